#include "page.h"

#include <stdlib.h>

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

int read_page(FILE *file, Page *page) {
    int kind = 0, shades = 0;
    const int fields = fscanf(file, " P%d %d %d %d", &kind, &page->columns, &page->rows, &shades);
    size_t bytes;
    page->pixels = NULL;
    if (fields == EOF) return 0;
    if (fields != 4 || (kind != 5 && kind != 6) || shades != 255 || page->columns < 1 || page->rows < 1 || page->columns > 1 << 13 ||
        page->rows > 1 << 13 || fgetc(file) == EOF)
        return -1;
    page->channels = kind == 6 ? 3 : 1;
    bytes = (size_t)page->rows * (size_t)page->columns * (size_t)page->channels;
    page->pixels = malloc(bytes);
    if (page->pixels && fread(page->pixels, 1, bytes, file) == bytes) return 1;
    free(page->pixels);
    return -1;
}

/* Between which two of `from` elements the middle of element i of `to` lies, and how much of the second it is, in 1/2048. */
static void between(int i, int from, int to, int *first, int *second, int *part) {
    const int64_t middle = (2 * (int64_t)i + 1) * from * 1024 / to - 1024, last = (int64_t)(from - 1) * 2048;
    const int at = (int)(middle < 0 ? 0 : middle > last ? last : middle);
    *first = at >> 11, *part = at & 2047, *second = least(*first + 1, from - 1);
}

void detection_size(const Page *page, int *rows, int *columns) {
    const int side = most(page->rows, page->columns), limit = least(side, 960);
    *rows = most(1, (page->rows * limit / side + 16) / 32) * 32;
    *columns = most(1, (page->columns * limit / side + 16) / 32) * 32;
}

int line_columns(Box box) {
    const int height = box.y1 - box.y0;
    return least(4096, (48 * (box.x1 - box.x0) + height - 1) / height);
}

void cut(const Page *page, Box box, int turned, int rows, int columns, int filled, float *input) {
    const int height = box.y1 - box.y0, width = box.x1 - box.x0;
    int channel, row, column, y[2], x[2], down, across, i;
    for (channel = 0; channel < 3; ++channel)
        for (row = 0; row < rows; ++row) {
            between(row, height, rows, &y[0], &y[1], &down);
            for (column = 0; column < columns; ++column, ++input) {
                int sums[2];
                *input = 0;
                if (column >= filled) continue;
                between(column, width, filled, &x[0], &x[1], &across);
                for (i = 0; i < 2; ++i) {
                    const int line = turned ? box.y1 - 1 - y[i] : box.y0 + y[i];
                    const int left = turned ? box.x1 - 1 - x[0] : box.x0 + x[0], right = turned ? box.x1 - 1 - x[1] : box.x0 + x[1];
                    const unsigned char *from = page->pixels + (size_t)line * (size_t)page->columns * (size_t)page->channels;
                    from += page->channels == 3 ? 2 - channel : 0;
                    sums[i] = from[left * page->channels] * (2048 - across) + from[right * page->channels] * across;
                }
                *input = ((float)((sums[0] * (2048 - down) + sums[1] * down + (1 << 21)) >> 22) / 255.0f - 0.5f) / 0.5f;
            }
        }
}

/* Pixels of a row side by side, and the box of all that is joined to them, which is that of `parent` if that is another run. */
typedef struct Run {
    int x0, x1, parent;
    Box box;
} Run;

static int root_of(const Run *runs, int i) {
    while (runs[i].parent != i) i = runs[i].parent;
    return i;
}

/* The runs of probabilities above 0.3, those of neighbouring rows that touch joined, corners too. */
static int join_runs(const unsigned char *map, int rows, int columns, Run *runs) {
    int row, before = 0, now = 0, count = 0, i, end;
    for (row = 0; row < rows; ++row, before = now, now = count, map += columns)
        for (end = 0; end < columns; ++end) {
            Run run = {end, 0, count, {0, row, 0, row + 1}};
            while (end < columns && map[end] > 76) ++end;
            if (end == run.x0) continue;
            run.x1 = run.box.x1 = end, run.box.x0 = run.x0;
            for (i = before; i < now; ++i) {
                const int other = root_of(runs, i);
                if (runs[i].x0 > run.x1 || run.x0 > runs[i].x1) continue;
                runs[other].parent = count;
                run.box.x0 = least(run.box.x0, runs[other].box.x0), run.box.x1 = most(run.box.x1, runs[other].box.x1);
                run.box.y0 = least(run.box.y0, runs[other].box.y0);
            }
            runs[count++] = run;
        }
    return count;
}

static int compare_boxes(const void *a, const void *b) {
    const Box *p = a, *q = b;
    return p->y0 != q->y0 ? p->y0 - q->y0 : p->x0 - q->x0;
}

/* The expansion of Liao et al. 2020 for boxes that stand upright: by area * 1.6 / perimeter. */
Box *find_boxes(const float *map, int rows, int columns, const Page *page, int *count) {
    const size_t pixels = (size_t)rows * (size_t)columns;
    unsigned char *shades = malloc(pixels);
    Run *runs = malloc((pixels / 2 + (size_t)rows) * sizeof *runs);
    Box *boxes = malloc((pixels / 2 + (size_t)rows) * sizeof *boxes);
    int i, j, n;
    size_t at;
    *count = 0;
    if (!shades || !runs || !boxes) {
        free(shades), free(runs), free(boxes);
        return NULL;
    }
    for (at = 0; at < pixels; ++at) shades[at] = (unsigned char)(map[at] * 255.0f);
    n = join_runs(shades, rows, columns, runs);
    for (i = 0; i < n; ++i) {
        const Box b = runs[i].box;
        const int height = b.y1 - b.y0, width = b.x1 - b.x0, more = 4 * height * width / (5 * (height + width));
        int64_t sum = 0;
        int x, y;
        if (runs[i].parent != i || least(height, width) < 3) continue;
        for (y = b.y0; y < b.y1; ++y)
            for (x = b.x0; x < b.x1; ++x) sum += shades[y * columns + x];
        if (2 * sum < (int64_t)255 * height * width) continue; /* less than 0.5 in the mean */
        boxes[(*count)++] = (Box){most(b.x0 - more, 0) * page->columns / columns, most(b.y0 - more, 0) * page->rows / rows,
                                  least(((b.x1 + more) * page->columns + columns - 1) / columns, page->columns),
                                  least(((b.y1 + more) * page->rows + rows - 1) / rows, page->rows)};
    }
    free(shades), free(runs);
    /* Those whose tops are less than 10 rows apart are of one line. */
    qsort(boxes, (size_t)*count, sizeof *boxes, compare_boxes);
    for (i = 1; i < *count; ++i)
        for (j = i; j > 0 && boxes[j].y0 - boxes[j - 1].y0 < 10 && boxes[j].x0 < boxes[j - 1].x0; --j) {
            const Box box = boxes[j];
            boxes[j] = boxes[j - 1], boxes[j - 1] = box;
        }
    return boxes;
}
