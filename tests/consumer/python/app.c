/* app <factor>: whether the kernel multiplies by it. */
#include <stdlib.h>

#include "scaled.h"

int main(int count, char **words) {
    float x[3] = {1, 2, 4}, y[3] = {0};
    const TessTensor tx = tess_dense(x, TESS_F32, 1, (int64_t[]){3}), ty = tess_dense(y, TESS_F32, 1, (int64_t[]){3});
    return count != 2 || scaled(&tx, &ty, NULL) != TESS_OK || y[2] != 4 * (float)atof(words[1]);
}
