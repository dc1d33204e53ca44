// Names that targets used to have. What is read may use them; what is printed, recorded and hashed has the names of today. A
// schedule's name has the name of its target as a part, so these are former names of schedules too.
#pragma once
#include <string>
#include <vector>

namespace tessera {

struct FormerName {
    std::string was, is;
};
const std::vector<FormerName> &former_target_names();

// "avx512_bf16+avx_vnni" is "znver4+avx_vnni" today. Any other text is returned unchanged.
std::string current_target_name(const std::string &name);

// "matmul/bf16/prepacked_avx512_bf16" is "matmul/bf16/prepacked_znver4" today. Any other text is returned unchanged.
std::string current_schedule_name(const std::string &name);

// The other spellings of a schedule's name, under which its file may still lie: "gemm/avx512_bf16" for "gemm/znver4".
std::vector<std::string> former_schedule_names(const std::string &current);

}  // namespace tessera
