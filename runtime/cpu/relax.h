/* What a loop does that looks at memory again and again. */
#ifndef TESSERA_CPU_RELAX_H
#define TESSERA_CPU_RELAX_H

/* Lets the other thread of a core go on, and ends a wait on memory without a wrong guess, where the processor has a word for it. */
static inline void tess_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
