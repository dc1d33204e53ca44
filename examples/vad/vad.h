/* Whether somebody speaks: silero-vad out of a bundle, with what it has heard. */
#ifndef VAD_H
#define VAD_H

enum { VAD_RATE = 16000, VAD_SAMPLES = 512 }; /* samples in a second, and in a piece */

typedef struct Vad Vad;

/* Opens the bundle. NULL where that cannot be: then `error` says why, in at most `bytes` characters. */
Vad *vad_open(const char *bundle, char *error, unsigned bytes);

/* How likely somebody speaks in the next piece, 0 to 1. Samples are -1 to 1. Nothing is allocated. -1 where the call failed. */
float vad_step(Vad *vad, const float samples[VAD_SAMPLES]);

/* As if nothing had been heard. */
void vad_reset(Vad *vad);

void vad_close(Vad *vad);

#endif
