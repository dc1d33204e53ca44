#include "picture.h"

enum { WIDTH = 960, HEIGHT = 240, LEFT = 40, TOP = 20, BOTTOM = 30 };

/* The column of a piece's begin, and the row of a share of the height from below. */
static double column(long piece, long count) {
    return LEFT + (double)(WIDTH - LEFT - 10) * (double)piece / (double)(count > 0 ? count : 1);
}
static double row(double share) { return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share); }

int draw(FILE *file, const Piece *pieces, long count, double seconds) {
    static const double steps[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 600};
    const double length = seconds * (double)count;
    double step = 3600, at;
    float loudest = 1e-3f;
    long i;
    int k;
    for (k = 10; k >= 0; --k)
        if (length / steps[k] <= 20) step = steps[k];
    for (i = 0; i < count; ++i) {
        if (pieces[i].highest > loudest) loudest = pieces[i].highest;
        if (-pieces[i].lowest > loudest) loudest = -pieces[i].lowest;
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT);
    for (i = 0; i < count; ++i) /* pieces with speech have a coloured ground */
        if (pieces[i].probability >= 0.5f)
            fprintf(file, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"#fde8cd\"/>\n", column(i, count), row(1),
                    column(i + 1, count) - column(i, count), row(0) - row(1));
    fputs("<path stroke=\"#8aa4bf\" d=\"", file);
    for (i = 0; i < count; ++i) {
        const double x = (column(i, count) + column(i + 1, count)) / 2;
        fprintf(file, "M%.2f %.2fV%.2f", x, row(0.5 + 0.5 * (double)(pieces[i].highest / loudest)),
                row(0.5 + 0.5 * (double)(pieces[i].lowest / loudest)));
    }
    fputs("\"/>\n<polyline fill=\"none\" stroke=\"#c2410c\" stroke-width=\"1.5\" points=\"", file);
    for (i = 0; i < count; ++i)
        fprintf(file, "%.2f,%.2f ", (column(i, count) + column(i + 1, count)) / 2, row((double)pieces[i].probability));
    fputs("\"/>\n", file);
    for (k = 0; k <= 2; ++k)
        fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n", LEFT - 6, row(k / 2.0) + 4, k / 2.0);
    for (at = 0; at <= length; at += step)
        fprintf(file, "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">%g s</text>\n", column((long)(at / seconds + 0.5), count),
                HEIGHT - 10, at);
    fputs("</svg>\n", file);
    return !ferror(file);
}
