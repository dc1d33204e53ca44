#include "bench/measure/parameter_words.h"

#include <cstring>

namespace tessera {

std::vector<int64_t> parameter_words(const TileProgram &program, const std::map<std::string, Scalar> &parameters) {
    std::vector<int64_t> words;
    for (const Parameter &p : program.parameters) {
        const Scalar &value = parameters.at(p.name);
        int64_t word = value.integer;
        const float narrow = static_cast<float>(value.real);
        if (p.dtype == DType::f32) std::memcpy(&word, &narrow, sizeof narrow);
        if (p.dtype == DType::f64) std::memcpy(&word, &value.real, sizeof word);
        words.push_back(word);
    }
    return words;
}

}  // namespace tessera
