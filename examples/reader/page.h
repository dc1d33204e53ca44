/* Pixels and boxes: a page is read, text is found in a map of probabilities, and parts of the page become inputs of networks. All in
 * integers but for the last step of a pixel, so that every compiler gives the same bits. */
#ifndef READER_PAGE_H
#define READER_PAGE_H

#include <stdint.h>
#include <stdio.h>

/* 8 bits a channel, rows from the top. */
typedef struct Page {
    int rows, columns, channels; /* 1 channel, or red, green and blue */
    unsigned char *pixels;       /* [rows, columns, channels], of malloc */
} Page;

/* In pixels of a page or of a map; x1 and y1 are outside. */
typedef struct Box {
    int x0, y0, x1, y1;
} Box;

/* The next PGM or PPM picture of 255 shades (P5, P6) of at most 8192 rows and columns. 1: there is one; 0: the file ends; -1: it is none,
 * is cut short or there is no memory. */
int read_page(FILE *file, Page *page);

/* What detection looks at: about the page's extents, at most 960, multiples of 32. */
void detection_size(const Page *page, int *rows, int *columns);

/* Columns of a box of text at 48 rows, at most 4096. */
int line_columns(Box box);

/* The network's input [3, rows, columns], blue, green and red from -1 to 1: a box of the page, upside down if `turned`, at `filled` columns
 * by bilinear interpolation in steps of 1/2048, and 0 to its right. */
void cut(const Page *page, Box box, int turned, int rows, int columns, int filled, float *input);

/* Boxes of the page where text is, from the top and the left, by the map of `rows` x `columns` probabilities that detection gave for it.
 * The list is of malloc; null if there is no memory. */
Box *find_boxes(const float *map, int rows, int columns, const Page *page, int *count);

#endif
