// The instruction families that compute fragments, in C: registers of AMX, or arrays on the stack. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

namespace tessera::emit_c {

// gcc 12 takes the first 8 bytes for all that a configuration is read from, so it is no variable that may be on the stack; and it takes
// moves of tiles for statements that read no memory, hence what keeps other accesses on their side of them.
static constexpr const char *fragment_macros = R"(/* Fragments: 16 rows of 64 bytes. */
#ifdef TESS_X86_64
static const struct {
    uint8_t palette, first_row, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tess_fragments = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
#define TESS_FRAGMENTS_BEGIN _tile_loadconfig(&tess_fragments)
#define TESS_FRAGMENTS_END _tile_release()
#define TESS_FRAGMENT(type, name, count) (void)0
#define TESS_FRAGMENT_ZERO(number, name) _tile_zero(number)
#define TESS_FRAGMENT_LOAD(number, name, from, stride) \
    do { \
        __atomic_signal_fence(__ATOMIC_SEQ_CST); \
        _tile_loadd(number, from, (size_t)(stride) * sizeof *(from)); \
    } while (0)
#define TESS_FRAGMENT_STORE(number, name, to, stride) \
    do { \
        _tile_stored(number, to, (size_t)(stride) * sizeof *(to)); \
        __atomic_signal_fence(__ATOMIC_SEQ_CST); \
    } while (0)
#else
#define TESS_FRAGMENTS_BEGIN (void)0
#define TESS_FRAGMENTS_END (void)0
#define TESS_FRAGMENT(type, name, count) type name[count] __attribute__((aligned(64)))
#define TESS_FRAGMENT_ZERO(number, name) __builtin_memset(name, 0, sizeof name)
#define TESS_FRAGMENT_LOAD(number, name, from, stride) \
    for (int row = 0; row < 16; row++) __builtin_memcpy((uint8_t *)name + 64 * row, (from) + row * (stride), 64)
#define TESS_FRAGMENT_STORE(number, name, to, stride) \
    for (int row = 0; row < 16; row++) __builtin_memcpy((to) + row * (stride), (const uint8_t *)name + 64 * row, 64)
#endif

)";

std::string Operations::fragment_step(const Instruction &family) {
    const FragmentForm &form = *family.fragments;
    if (fresh("fragments")) functions_ += fragment_macros;
    const std::string name = family.name + "_step_" + short_name({family.accumulator, 0});
    const std::string macro = "TESS_" + family.name;
    if (!fresh(name)) return macro;
    for (const CStep::Function &f : form.helpers)
        if (fresh(f.name)) define(f.result, f.name, f.parameters, with_emitter_names(f.body), false);
    define("void", name,
           fmt::format("{} *sum, const {} *a, const {} *b", stored_type(family.accumulator), stored_type(family.first),
                       stored_type(family.second)),
           with_emitter_names(form.portable), false);
    functions_ += fmt::format(
        "#ifdef TESS_X86_64\n#define {0}(sum_number, sum, a_number, a, b_number, b) {1}(sum_number, a_number, b_number)\n#else\n"
        "#define {0}(sum_number, sum, a_number, a, b_number, b) {2}(sum, a, b)\n#endif\n\n",
        macro, form.native, name);
    return macro;
}

}  // namespace tessera::emit_c
