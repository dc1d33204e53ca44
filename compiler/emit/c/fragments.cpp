// The instruction families that compute fragments, in C: registers of AMX, vectors of ARM, or arrays on the stack. See operations.h.
#include "compiler/emit/c/operations.h"

#include <fmt/format.h>

namespace tessera::emit_c {

// gcc 12 takes the first 8 bytes for all that a configuration is read from, so it is no variable that may be on the stack; and it takes
// moves of tiles for statements that read no memory, hence what keeps other accesses on their side of them.
static constexpr const char *tile_macros = R"(/* Fragments: 16 rows of 64 bytes. */
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
)";

static constexpr const char *vector_macros = R"(/* Fragments: 2 rows of 8 bytes. */
#ifdef TESS_ARM64
#define TESS_FRAGMENTS_BEGIN (void)0
#define TESS_FRAGMENTS_END (void)0
#define TESS_FRAGMENT(type, name, count) uint8x16_t name
#define TESS_FRAGMENT_ZERO(number, name) name = vdupq_n_u8(0)
#define TESS_FRAGMENT_LOAD(number, name, from, stride) \
    name = vcombine_u8(vld1_u8((const uint8_t *)(from)), vld1_u8((const uint8_t *)((from) + (stride))))
#define TESS_FRAGMENT_STORE(number, name, to, stride) \
    do { \
        vst1_u8((uint8_t *)(to), vget_low_u8(name)); \
        vst1_u8((uint8_t *)((to) + (stride)), vget_high_u8(name)); \
    } while (0)
)";

// $rows and $bytes of each.
static constexpr const char *array_macros = R"(#else
#define TESS_FRAGMENTS_BEGIN (void)0
#define TESS_FRAGMENTS_END (void)0
#define TESS_FRAGMENT(type, name, count) type name[count] __attribute__((aligned(64)))
#define TESS_FRAGMENT_ZERO(number, name) __builtin_memset(name, 0, sizeof name)
#define TESS_FRAGMENT_LOAD(number, name, from, stride) \
    for (int row = 0; row < $rows; row++) __builtin_memcpy((uint8_t *)name + $bytes * row, (from) + row * (stride), $bytes)
#define TESS_FRAGMENT_STORE(number, name, to, stride) \
    for (int row = 0; row < $rows; row++) __builtin_memcpy((to) + row * (stride), (const uint8_t *)name + $bytes * row, $bytes)
#endif

)";

struct FragmentHolder {
    const char *macros, *when, *rows, *bytes, *step;  // the step is over $native
};

static const FragmentHolder &holder_of(FragmentForm::Held held) {
    static const FragmentHolder tile = {tile_macros, "TESS_X86_64", "16", "64", "$native(sum_number, a_number, b_number)"};
    static const FragmentHolder vector = {vector_macros, "TESS_ARM64", "2", "8", "sum = $native"};
    return held == FragmentForm::Held::tile ? tile : vector;
}

std::string Operations::fragment_step(const Instruction &family) {
    const FragmentForm &form = *family.fragments;
    const FragmentHolder &holder = holder_of(form.held);
    const Names names = {
        {"rows", [&] { return holder.rows; }}, {"bytes", [&] { return holder.bytes; }}, {"native", [&] { return form.native; }}};
    if (fresh("fragments")) functions_ += holder.macros + with_names(array_macros, names);
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
        "#ifdef {0}\n#define {1}(sum_number, sum, a_number, a, b_number, b) {2}\n#else\n"
        "#define {1}(sum_number, sum, a_number, a, b_number, b) {3}(sum, a, b)\n#endif\n\n",
        holder.when, macro, with_names(holder.step, names), name);
    return macro;
}

}  // namespace tessera::emit_c
