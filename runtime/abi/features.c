#if defined(__linux__)
#define _GNU_SOURCE
#include <unistd.h>
#endif

#include "runtime/abi/kernel.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

/* The word in which a feature's bit is: of CPUID, or of what Linux tells a process on ARM. */
enum { EAX, EBX, ECX, EDX, ARM_HWCAP, ARM_HWCAP2 };

/* Parts of XCR0, which says what registers the operating system saves. */
enum { XCR0_NONE = 0, XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6, XCR0_AMX = 0x60000 };

typedef struct Feature {
    const char *name;
    unsigned leaf, subleaf; /* of CPUID */
    int output, bit;
    unsigned xcr0;
} Feature;

static const Feature features[TESS_CPU_FEATURE_COUNT] = {
    {"sse4_1", 1, 0, ECX, 19, XCR0_NONE},
    {"sse4_2", 1, 0, ECX, 20, XCR0_NONE},
    {"popcnt", 1, 0, ECX, 23, XCR0_NONE},
    {"abm", 0x80000001u, 0, ECX, 5, XCR0_NONE},
    {"bmi1", 7, 0, EBX, 3, XCR0_NONE},
    {"bmi2", 7, 0, EBX, 8, XCR0_NONE},
    {"avx", 1, 0, ECX, 28, XCR0_AVX},
    {"avx2", 7, 0, EBX, 5, XCR0_AVX},
    {"fma", 1, 0, ECX, 12, XCR0_AVX},
    {"f16c", 1, 0, ECX, 29, XCR0_AVX},
    {"gfni", 7, 0, ECX, 8, XCR0_NONE},
    {"avx_vnni", 7, 1, EAX, 4, XCR0_AVX},
    {"avx512f", 7, 0, EBX, 16, XCR0_AVX512},
    {"avx512cd", 7, 0, EBX, 28, XCR0_AVX512},
    {"avx512bw", 7, 0, EBX, 30, XCR0_AVX512},
    {"avx512dq", 7, 0, EBX, 17, XCR0_AVX512},
    {"avx512vl", 7, 0, EBX, 31, XCR0_AVX512},
    {"avx512ifma", 7, 0, EBX, 21, XCR0_AVX512},
    {"avx512vbmi", 7, 0, ECX, 1, XCR0_AVX512},
    {"avx512_vbmi2", 7, 0, ECX, 6, XCR0_AVX512},
    {"avx512_bitalg", 7, 0, ECX, 12, XCR0_AVX512},
    {"avx512_vpopcntdq", 7, 0, ECX, 14, XCR0_AVX512},
    {"avx512_vnni", 7, 0, ECX, 11, XCR0_AVX512},
    {"avx512_bf16", 7, 1, EAX, 5, XCR0_AVX512},
    {"avx512_fp16", 7, 0, EDX, 23, XCR0_AVX512},
    {"amx_tile", 7, 0, EDX, 24, XCR0_AMX},
    {"amx_int8", 7, 0, EDX, 25, XCR0_AMX},
    {"amx_bf16", 7, 0, EDX, 22, XCR0_AMX},
    {"asimdhp", 0, 0, ARM_HWCAP, 10, XCR0_NONE},
    {"asimddp", 0, 0, ARM_HWCAP, 20, XCR0_NONE},
    {"i8mm", 0, 0, ARM_HWCAP2, 13, XCR0_NONE},
    {"bf16", 0, 0, ARM_HWCAP2, 14, XCR0_NONE},
    {"sse4a", 0x80000001u, 0, ECX, 6, XCR0_NONE},
};

#if defined(__x86_64__) || defined(__i386__)
static unsigned saved_by_system(void) {
    unsigned eax, ebx, ecx, edx, low, high;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & (1u << 27)) == 0) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
#if defined(__linux__) && defined(__x86_64__)
    {
        /* Linux traps AMX until a process asks for it: ARCH_REQ_XCOMP_PERM for tile data (18). */
        const long request = 0x1023, tile_data = 18;
        if ((low & XCR0_AMX) == XCR0_AMX && syscall(SYS_arch_prctl, request, tile_data) != 0) low &= ~(unsigned)XCR0_AMX;
    }
#endif
    return low;
}

static uint64_t detect(void) {
    const unsigned saved = saved_by_system();
    uint64_t found = 0;
    int i;
    for (i = 0; i < TESS_CPU_FEATURE_COUNT; ++i) {
        const Feature *feature = &features[i];
        unsigned outputs[4];
        if (feature->output > EDX) continue;
        if (!__get_cpuid_count(feature->leaf, feature->subleaf, &outputs[EAX], &outputs[EBX], &outputs[ECX], &outputs[EDX])) { continue; }
        if ((outputs[feature->output] >> feature->bit & 1u) != 0 && (saved & feature->xcr0) == feature->xcr0) { found |= UINT64_C(1) << i; }
    }
    return found;
}
#elif defined(__aarch64__) && defined(__linux__)
static uint64_t detect(void) {
    const unsigned long words[] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
    uint64_t found = 0;
    int i;
    for (i = 0; i < TESS_CPU_FEATURE_COUNT; ++i) {
        const Feature *feature = &features[i];
        if (feature->output >= ARM_HWCAP && (words[feature->output - ARM_HWCAP] >> feature->bit & 1u) != 0) { found |= UINT64_C(1) << i; }
    }
    return found;
}
#else
static uint64_t detect(void) { return 0; }
#endif

uint64_t tess_cpu_features(void) {
    static const uint64_t known = UINT64_C(1) << 63;
    static uint64_t cache;
    uint64_t found = __atomic_load_n(&cache, __ATOMIC_RELAXED);
    if (found == 0) {
        found = detect() | known;
        __atomic_store_n(&cache, found, __ATOMIC_RELAXED);
    }
    return found & ~known;
}

const char *tess_cpu_feature_name(int bit) { return bit >= 0 && bit < TESS_CPU_FEATURE_COUNT ? features[bit].name : NULL; }
