/* A library that a C compiler writes, in two objects: constants, data, zeros, a table of functions, calls between them and outside. */
#include <stdint.h>
#include <string.h>

typedef int64_t (*Step)(int64_t);

extern int64_t other_step(int64_t x);
extern int64_t shared_counter;

#if PART == 1
static const int64_t table[4] = {3, 5, 7, 11};
static int64_t zeros[100];
int64_t shared_counter = 40;
static int64_t own_step(int64_t x) { return x * table[x & 3]; }
static const Step steps[] = {own_step, other_step};

int64_t run_steps(int64_t x, int64_t which) { return steps[which & 1](x); }
int64_t count_up(void) {
    shared_counter++;
    return shared_counter + zeros[shared_counter % 100];
}
int64_t cleared(char *bytes, int64_t n) {
    memset(bytes, 0, (size_t)n);
    return other_step(n);
}
#else
float table_of_floats[] = {0.5f, 1.5f, 2.5f};
int64_t other_step(int64_t x) { return x + shared_counter; }
float from_table(int64_t i) { return table_of_floats[i]; }
#endif
