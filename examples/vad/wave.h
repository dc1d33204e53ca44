/* WAV files as they come: samples of one channel, 16 bits or floats, as floats of -1 to 1. */
#ifndef WAVE_H
#define WAVE_H

#include <stdio.h>

typedef struct Wave {
    FILE *file;
    unsigned rate, channels, bits, is_float;
    unsigned long long left; /* bytes of samples; ULLONG_MAX where a stream does not say */
} Wave;

/* Reads up to the first sample. Gives NULL, or what is wrong with the file. */
const char *wave_begin(Wave *wave, FILE *file);

/* Reads at most `count` samples, the mean of all channels, and gives how many there were. */
int wave_read(Wave *wave, float *samples, int count);

#endif
