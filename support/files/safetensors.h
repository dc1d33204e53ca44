// Tensors in a file, in the format safetensors of Hugging Face (https://github.com/huggingface/safetensors, "Format"): eight bytes that say
// how long the header is, a header of JSON that says each tensor's type, shape and bytes, and the bytes. Such files come from strangers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// One tensor, whose bytes somebody else keeps.
struct SafeTensor {
    std::string name;
    std::string type;              // "F32", "BF16", "F8_E4M3", … as the format names them
    std::vector<int64_t> extents;  // none of a scalar
    std::string_view bytes;        // row-major, little-endian, not aligned
};

class Safetensors {
public:
    // UserErrors, each with the file and, where it is one's, the tensor: safetensors.file, safetensors.too-large; safetensors.cut where
    // the file is shorter than it says; safetensors.header where the header is no object, or over 16 MiB; those of parse_json, among them
    // a repeated name; safetensors.metadata, safetensors.field, safetensors.type, safetensors.shape; safetensors.offsets where bytes lie
    // outside of the file, are more or fewer than type and shape say, belong to two tensors or to none.
    explicit Safetensors(const std::filesystem::path &file);
    Safetensors(std::string content, const std::string &subject);
    Safetensors(const Safetensors &) = delete;

    const std::vector<SafeTensor> &tensors() const { return tensors_; }  // by name
    const std::map<std::string, std::string> &metadata() const { return metadata_; }
    // Where the bytes of one of them begin in the file.
    uint64_t offset(const SafeTensor &tensor) const { return static_cast<uint64_t>(tensor.bytes.data() - content_.data()); }
    // UserError safetensors.missing, with the nearest name.
    const SafeTensor &tensor(const std::string &name) const;

private:
    void read();
    std::string content_, subject_;
    std::vector<SafeTensor> tensors_;
    std::map<std::string, std::string> metadata_;
};

// Bits of an element; 0 of a type that the format does not have.
int safetensors_bits(std::string_view type);

// Writes the file, whole or not at all: types of many bits first, then by name, as the format's own writer does, so that all tensors are
// aligned. UserErrors output.folder, output.write; safetensors.repeated for a name that comes twice or is __metadata__. InternalError where
// bytes, type and shape do not fit.
void write_safetensors(const std::filesystem::path &file, std::vector<SafeTensor> tensors,
                       const std::map<std::string, std::string> &metadata);

}  // namespace tessera
