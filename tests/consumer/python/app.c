/* app <factor>: whether the kernels multiply by it. */
#include <stdlib.h>

#include "both.h"
#include "scaled.h"

int main(int count, char **words) {
    float x[3] = {1, 2, 4}, y[3] = {0};
    const TessTensor tx = tess_dense(x, TESS_F32, 1, (int64_t[]){3}), ty = tess_dense(y, TESS_F32, 1, (int64_t[]){3});
    const float factor = count == 2 ? (float)atof(words[1]) : 0;
    if (scaled(&tx, &ty, NULL) != TESS_OK || y[2] != 4 * factor) return 1;
    if (doubled(&ty, &tx, NULL) != TESS_OK || x[2] != 8 * factor) return 2;
    return scaled_three(&tx, &ty, NULL) != TESS_OK || y[2] != 8 * factor * factor;
}
