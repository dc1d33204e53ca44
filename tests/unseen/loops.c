// What generator.cpp declares, as an engineer would write it first: plain loops over arrays, in an order that suits the memory, and no
// more thought than that. A function takes the dims, the inputs, the outputs, the parameters, each in the order of their declaration.
#include <math.h>
#include <stdint.h>

void max_plus(int M, int N, int K, const float x[restrict M][K], const float w[restrict K][N], float y[restrict M][N],
              int32_t at[restrict M][N]) {
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) y[m][n] = -INFINITY, at[m][n] = 0;
        for (int k = 0; k < K; k++)
            for (int n = 0; n < N; n++) {
                const float sum = x[m][k] + w[k][n];
                at[m][n] = sum > y[m][n] ? k : at[m][n];
                y[m][n] = sum > y[m][n] ? sum : y[m][n];
            }
    }
}

void noisy_or(int M, int N, int K, const float x[restrict M][K], const float w[restrict K][N], float y[restrict M][N]) {
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) y[m][n] = 1;
        for (int k = 0; k < K; k++)
            for (int n = 0; n < N; n++) y[m][n] *= 1 - x[m][k] * w[k][n];
        for (int n = 0; n < N; n++) y[m][n] = 1 - y[m][n];
    }
}

void l1_distance(int I, int J, int K, const float x[restrict I][K], const float c[restrict J][K], float y[restrict I][J]) {
    for (int i = 0; i < I; i++)
        for (int j = 0; j < J; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++) sum += fabsf(x[i][k] - c[j][k]);
            y[i][j] = sum;
        }
}

void pairwise_lse(int I, int J, int K, const float x[restrict I][K], const float c[restrict J][K], float y[restrict I][J]) {
    for (int i = 0; i < I; i++)
        for (int j = 0; j < J; j++) {
            float top = -INFINITY, sum = 0;
            for (int k = 0; k < K; k++) top = fmaxf(top, x[i][k] + c[j][k]);
            for (int k = 0; k < K; k++) sum += expf(x[i][k] + c[j][k] - top);
            y[i][j] = logf(sum) + top;
        }
}

void vector_quantize(int M, int N, int K, const float x[restrict M][K], const float codes[restrict N][K], int32_t code[restrict M],
                     float y[restrict M][K]) {
    for (int m = 0; m < M; m++) {
        float nearest = INFINITY;
        int best = 0;
        for (int n = 0; n < N; n++) {
            float distance = 0;
            for (int k = 0; k < K; k++) distance += (x[m][k] - codes[n][k]) * (x[m][k] - codes[n][k]);
            if (distance < nearest) nearest = distance, best = n;
        }
        code[m] = best;
        for (int k = 0; k < K; k++) y[m][k] = x[m][k] - codes[best][k];
    }
}

void hausdorff(int B, int M, int N, const float x[restrict B][M][3], const float z[restrict B][N][3], float y[restrict B]) {
    for (int b = 0; b < B; b++) {
        float largest = 0;
        for (int m = 0; m < M; m++) {
            float nearest = INFINITY;
            for (int n = 0; n < N; n++) {
                float squares = 0;
                for (int d = 0; d < 3; d++) squares += (x[b][m][d] - z[b][n][d]) * (x[b][m][d] - z[b][n][d]);
                nearest = fminf(nearest, squares);
            }
            largest = fmaxf(largest, nearest);
        }
        y[b] = sqrtf(largest);
    }
}

void transfer_matrices(int M, int K, const float x[restrict M][K][2][2], float y[restrict M][2][2]) {
    for (int m = 0; m < M; m++) {
        float p[2][2] = {{1, 0}, {0, 1}};
        for (int k = 0; k < K; k++)
            for (int i = 0; i < 2; i++) {
                const float a = p[i][0], b = p[i][1];
                for (int j = 0; j < 2; j++) p[i][j] = a * x[m][k][0][j] + b * x[m][k][1][j];
            }
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) y[m][i][j] = p[i][j];
    }
}

void max_subarray(int M, int T, const float x[restrict M][T], float y[restrict M]) {
    for (int m = 0; m < M; m++) {
        float here = 0, best = 0;
        for (int t = 0; t < T; t++) {
            here = fmaxf(here + x[m][t], 0);
            best = fmaxf(best, here);
        }
        y[m] = best;
    }
}

void linear_recurrence(int T, int C, const float a[restrict T][C], const float x[restrict T][C], const float q[restrict T][C],
                       float y[restrict T]) {
    float h[C];
    for (int c = 0; c < C; c++) h[c] = 0;
    for (int t = 0; t < T; t++) {
        float sum = 0;
        for (int c = 0; c < C; c++) {
            h[c] = a[t][c] * h[c] + x[t][c];
            sum += q[t][c] * h[c];
        }
        y[t] = sum;
    }
}

void selective_scan(int T, int C, int S, const float x[restrict T][C], const float dt[restrict T][C], const float a[restrict C][S],
                    const float b[restrict T][S], const float c[restrict T][S], float y[restrict T][C]) {
    float h[C][S];
    for (int i = 0; i < C; i++)
        for (int s = 0; s < S; s++) h[i][s] = 0;
    for (int t = 0; t < T; t++)
        for (int i = 0; i < C; i++) {
            float sum = 0;
            for (int s = 0; s < S; s++) {
                h[i][s] = expf(dt[t][i] * a[i][s]) * h[i][s] + dt[t][i] * x[t][i] * b[t][s];
                sum += c[t][s] * h[i][s];
            }
            y[t][i] = sum;
        }
}

void running_moments(int T, int C, const float x[restrict T][C], float y[restrict T][C]) {
    float mean[C], squares[C];
    for (int c = 0; c < C; c++) mean[c] = squares[c] = 0;
    for (int t = 0; t < T; t++)
        for (int c = 0; c < C; c++) {
            const float n = t + 1, d = x[t][c] - mean[c];
            mean[c] += d / n;
            squares[c] += d * (x[t][c] - mean[c]);
            y[t][c] = (x[t][c] - mean[c]) / sqrtf(squares[c] / n + 1e-5f);
        }
}

void bilateral(int H, int W, int R, int S, const float x[restrict H][W], const float g[restrict R][S],
               float y[restrict H - R + 1][W - S + 1], float sharpness) {
    for (int p = 0; p < H - R + 1; p++)
        for (int q = 0; q < W - S + 1; q++) {
            float sum = 0, weights = 0;
            for (int r = 0; r < R; r++)
                for (int s = 0; s < S; s++) {
                    const float d = x[p + r][q + s] - x[p + R / 2][q + S / 2];
                    const float weight = expf(g[r][s] - d * d * sharpness);
                    sum += weight * x[p + r][q + s];
                    weights += weight;
                }
            y[p][q] = sum / weights;
        }
}

void erosion(int H, int W, int C, int R, int S, const float x[restrict H][W][C], const float k[restrict R][S],
             float y[restrict H - R + 1][W - S + 1][C]) {
    for (int p = 0; p < H - R + 1; p++)
        for (int q = 0; q < W - S + 1; q++) {
            for (int c = 0; c < C; c++) y[p][q][c] = INFINITY;
            for (int r = 0; r < R; r++)
                for (int s = 0; s < S; s++)
                    for (int c = 0; c < C; c++) y[p][q][c] = fminf(y[p][q][c], x[p + r][q + s][c] - k[r][s]);
        }
}

void rotate(int B, int N, const float x[restrict B][N][3], const float q[restrict B][4], float y[restrict B][N][3]) {
    for (int b = 0; b < B; b++) {
        const float w = q[b][0], ux = q[b][1], uy = q[b][2], uz = q[b][3];
        for (int n = 0; n < N; n++) {
            const float vx = x[b][n][0], vy = x[b][n][1], vz = x[b][n][2];
            const float cx = uy * vz - uz * vy, cy = uz * vx - ux * vz, cz = ux * vy - uy * vx;
            y[b][n][0] = vx + 2 * (w * cx + uy * cz - uz * cy);
            y[b][n][1] = vy + 2 * (w * cy + uz * cx - ux * cz);
            y[b][n][2] = vz + 2 * (w * cz + ux * cy - uy * cx);
        }
    }
}

void group_glu(int M, int G, int K, int F, int N, const float x[restrict M][G][K], const float gate[restrict G][K][F],
               const float up[restrict G][K][F], const float down[restrict G][F][N], float y[restrict M][G][N]) {
    float gated[F], raised[F];
    for (int m = 0; m < M; m++)
        for (int g = 0; g < G; g++) {
            for (int f = 0; f < F; f++) gated[f] = raised[f] = 0;
            for (int k = 0; k < K; k++)
                for (int f = 0; f < F; f++) {
                    gated[f] += x[m][g][k] * gate[g][k][f];
                    raised[f] += x[m][g][k] * up[g][k][f];
                }
            for (int f = 0; f < F; f++) gated[f] = gated[f] / (1 + expf(-gated[f])) * raised[f];
            for (int n = 0; n < N; n++) y[m][g][n] = 0;
            for (int f = 0; f < F; f++)
                for (int n = 0; n < N; n++) y[m][g][n] += gated[f] * down[g][f][n];
        }
}

void top2_routing(int M, int K, int E, int N, const float x[restrict M][K], const float w[restrict K][E], const float expert[restrict E][N],
                  float y[restrict M][N], int32_t first[restrict M], int32_t second[restrict M]) {
    float score[E];
    for (int m = 0; m < M; m++) {
        for (int e = 0; e < E; e++) score[e] = 0;
        for (int k = 0; k < K; k++)
            for (int e = 0; e < E; e++) score[e] += x[m][k] * w[k][e];
        int a = score[1] > score[0], b = 1 - a;
        for (int e = 2; e < E; e++)
            if (score[e] > score[a]) b = a, a = e;
            else if (score[e] > score[b]) b = e;
        const float share = 1 / (1 + expf(score[b] - score[a]));
        for (int n = 0; n < N; n++) y[m][n] = share * expert[a][n] + (1 - share) * expert[b][n];
        first[m] = a, second[m] = b;
    }
}

void weighted_bag(int B, int T, int V, int N, const int64_t offsets[restrict B + 1], const int32_t id[restrict T],
                   const float weight[restrict T], const float table[restrict V][N], float y[restrict B][N]) {
    for (int b = 0; b < B; b++) {
        for (int n = 0; n < N; n++) y[b][n] = 0;
        for (int64_t t = offsets[b]; t < offsets[b + 1]; t++)
            for (int n = 0; n < N; n++) y[b][n] += weight[t] * table[id[t]][n];
    }
}

void ragged_pool(int B, int T, int N, const int64_t offsets[restrict B + 1], const float score[restrict T],
                 const float value[restrict T][N], float y[restrict B][N]) {
    for (int b = 0; b < B; b++) {
        float top = -INFINITY, total = 0;
        for (int64_t t = offsets[b]; t < offsets[b + 1]; t++) top = fmaxf(top, score[t]);
        for (int n = 0; n < N; n++) y[b][n] = 0;
        for (int64_t t = offsets[b]; t < offsets[b + 1]; t++) {
            const float weight = expf(score[t] - top);
            total += weight;
            for (int n = 0; n < N; n++) y[b][n] += weight * value[t][n];
        }
        for (int n = 0; n < N; n++) y[b][n] /= fmaxf(total, 1);
    }
}

void code_distance(int M, int N, int G, const uint8_t code[restrict N][G], const float table[restrict M][G][256], float y[restrict M][N]) {
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int g = 0; g < G; g++) sum += table[m][g][code[n][g]];
            y[m][n] = sum;
        }
}

void grouped_int8(int M, int N, int G, int K, const int8_t x[restrict M][G][K], const int8_t w[restrict N][G][K],
                  const float x_scale[restrict M][G], const float w_scale[restrict N][G], float y[restrict M][N]) {
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int g = 0; g < G; g++) {
                int32_t inner = 0;
                for (int k = 0; k < K; k++) inner += x[m][g][k] * w[n][g][k];
                sum += inner * x_scale[m][g] * w_scale[n][g];
            }
            y[m][n] = sum;
        }
}
