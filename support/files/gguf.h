// Tensors in a file of llama.cpp's format GGUF, versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): a header,
// values by key, what each tensor is and where, and the tensors' bytes. Elements are floats and integers, or blocks of codes with scales in
// between. Such files come from strangers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// How elements of a type lie: `elements` neighbours along the last axis in `bytes`.
struct GgufType {
    uint32_t id;  // in files
    const char *name;
    int64_t elements;
    uint64_t bytes;
};

// One tensor, whose bytes somebody else keeps.
struct GgufTensor {
    std::string name;
    const GgufType *type = nullptr;
    std::vector<int64_t> extents;  // outermost first, as everywhere here; the file has them the other way round
    std::string_view bytes;        // row-major, little-endian, not aligned
};

class Gguf {
public:
    // UserErrors, each with the file and, where it is one's, the tensor: gguf.file, gguf.too-large; gguf.format where the file is none, of
    // another version, or big-endian; gguf.cut where it is shorter than it says; gguf.value for a value by key that cannot be; gguf.name
    // for names that are repeated or not printable; gguf.type for a type that the format does not have; gguf.shape; gguf.offset where bytes
    // lie outside of the file, are not aligned or belong to two tensors.
    explicit Gguf(const std::filesystem::path &file);
    Gguf(std::string content, const std::string &subject);
    Gguf(const Gguf &) = delete;

    const std::vector<GgufTensor> &tensors() const { return tensors_; }  // by name
    const std::string &subject() const { return subject_; }

    // Whether the first bytes of a file are those of the format.
    static bool is_one(std::string_view content) { return content.starts_with("GGUF"); }

private:
    void read();
    std::string content_, subject_;
    std::vector<GgufTensor> tensors_;
};

}  // namespace tessera
