// A file of weights, in the format safetensors or GGUF, as the tensors that kernels take.
#pragma once
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/expr/dtype.h"
#include "support/files/gguf.h"
#include "support/files/safetensors.h"

namespace tessera {

class WeightsFile {
public:
    // `floats`: f32, f64, f16 or bf16, which all floats of the file and all numbers that its codes stand for are converted to, each to the
    // nearest. Without it tensors are as they are stored, but for GGUF's blocks. Those of Q8_0, Q4_0 and MXFP4 become codes, under the
    // tensor's name, and their scales, "<name>_scales" with an element for 32 codes. Q8_0: i8 [.., K] and f16. Q4_0: u8 [.., K / 2] with
    // two codes in a byte, the first in the low half, of numbers scale * (code - 8), and f16. MXFP4: alike, of f4e2m1fn, and f8e8m0fnu.
    // Other blocks become bf16.
    //
    // UserErrors of Safetensors and Gguf; gguf.type for tensors of types whose numbers are not known; gguf.name where a name of scales is
    // taken; safetensors.type for `floats` of another type.
    explicit WeightsFile(const std::filesystem::path &file, std::optional<DType> floats = {});
    WeightsFile(const WeightsFile &) = delete;

    const std::vector<SafeTensor> &tensors() const { return tensors_; }  // by name
    const std::map<std::string, std::string> &metadata() const;          // none of GGUF
    const std::vector<std::string> &notes() const { return notes_; }     // what was rounded
    // What the file is, where its tensors are as they are stored; null where some are made.
    const Safetensors *as_stored() const { return is_stored_ ? safetensors_.get() : nullptr; }

private:
    std::unique_ptr<Safetensors> safetensors_;
    std::unique_ptr<Gguf> gguf_;
    std::deque<std::string> made_;  // bytes of tensors that are in no file
    std::vector<SafeTensor> tensors_;
    std::vector<std::string> notes_;
    bool is_stored_ = false;

    std::string_view keep(std::string bytes) { return made_.emplace_back(std::move(bytes)); }
    void take_gguf(const GgufTensor &t, std::optional<DType> floats);
    void take_float(const SafeTensor &t, std::optional<DType> floats);
};

}  // namespace tessera
