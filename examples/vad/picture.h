/* A picture (SVG) of how likely somebody speaks, over the wave of what was heard. */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdio.h>

typedef struct Piece {
    float lowest, highest; /* of its samples */
    float probability;
} Piece;

/* `seconds` is the length of a piece. Gives 0 where it could not write. */
int draw(FILE *file, const Piece *pieces, long count, double seconds);

#endif
