#include "programs.h"

#include <stdexcept>

#include "minilm_bf16.h"
#include "minilm_f32.h"
#include "minilm_int8.h"

// The functions of a program differ in their names alone.
#define PACKING(program, operand) \
    { #operand, program##_pack_##operand##_size, program##_pack_##operand }
#define PROGRAM(name, program)                                                                                                           \
    {                                                                                                                                    \
        name, program##_describe, { PACKING(program, w_qkv), PACKING(program, w_out), PACKING(program, w_up), PACKING(program, w_down) } \
    }

const std::vector<Program> &programs() {
    static const std::vector<Program> all = {PROGRAM("f32", minilm_f32), PROGRAM("bf16", minilm_bf16), PROGRAM("int8", minilm_int8)};
    return all;
}

const Program &program_named(const std::string &name) {
    std::string known;
    for (const Program &program : programs()) {
        if (program.name == name) return program;
        known += (known.empty() ? "" : ", ") + program.name;
    }
    throw std::runtime_error("there are no weights " + name + "; there are " + known);
}
