// Arrays in a file of NumPy: a zip of files "name.npy", as numpy.savez writes it (NumPy Enhancement Proposal 1; PKWARE's APPNOTE). Such
// files come from strangers. What is compressed is refused: nothing here inflates.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// One array, whose bytes somebody else keeps.
struct NpyArray {
    std::string name;              // of its file, without ".npy"
    std::string type;              // NumPy's: "<f4", "|u1"
    std::vector<int64_t> extents;  // none of a scalar
    std::string_view bytes;        // row-major, little-endian, not aligned
};

class Npz {
public:
    // UserErrors, each with the file and, where it is one's, the array: npz.file, npz.too-large; npz.zip where the file is no whole zip
    // of at most 4 GiB, or its parts lie outside of it or over each other; npz.compressed; npz.checksum; npz.array where a part is no array
    // of plain numbers in row-major order, or has other bytes than type and shape say; npz.repeated.
    explicit Npz(const std::filesystem::path &file);
    Npz(std::string content, const std::string &subject);
    Npz(const Npz &) = delete;

    const std::vector<NpyArray> &arrays() const { return arrays_; }  // by name

private:
    void read();
    [[noreturn]] void refuse(const char *id, const std::string &why) const;
    std::string content_, subject_;
    std::vector<NpyArray> arrays_;
};

}  // namespace tessera
