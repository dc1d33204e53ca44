/* vad BUNDLE WAVE [PICTURE]: a line for each piece of 512 samples, when it begins and how likely somebody speaks; the last piece is filled
 * with zeros. WAVE is a file, or - for what comes in. The time of a step goes to stderr. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "picture.h"
#include "vad.h"
#include "wave.h"

static int fail(const char *code, const char *subject, const char *text) {
    fprintf(stderr, "error[vad.%s]: %s: %s\n", code, subject, text);
    return 1;
}

int main(int argc, char **argv) {
    static const double seconds = (double)VAD_SAMPLES / VAD_RATE;
    char text[256];
    float samples[VAD_SAMPLES];
    Wave wave;
    Piece *pieces = NULL;
    FILE *file, *picture = NULL;
    const char *wrong;
    Vad *vad;
    double busy = 0;
    long count = 0, room = 0;
    int got, i;
    if (argc != 3 && argc != 4)
        return fail("arguments", "vad", "expected BUNDLE, WAVE (a file, or -) and perhaps PICTURE (a file to write, SVG)");
    vad = vad_open(argv[1], text, sizeof text);
    if (!vad) return fail("bundle", argv[1], text);
    file = strcmp(argv[2], "-") == 0 ? stdin : fopen(argv[2], "rb");
    if (!file) return fail("wave", argv[2], "expected a file that can be read");
    wrong = wave_begin(&wave, file);
    if (wrong) return fail("wave", argv[2], wrong);
    if (wave.rate != VAD_RATE) return fail("wave", argv[2], "expected 16000 samples in a second; convert it: sox in.wav -r 16000 out.wav");
    while ((got = wave_read(&wave, samples, VAD_SAMPLES)) > 0) {
        Piece piece = {0, 0, 0};
        clock_t begin;
        for (i = 0; i < got; ++i) {
            if (samples[i] < piece.lowest) piece.lowest = samples[i];
            if (samples[i] > piece.highest) piece.highest = samples[i];
        }
        for (; i < VAD_SAMPLES; ++i) samples[i] = 0;
        begin = clock();
        piece.probability = vad_step(vad, samples);
        busy += (double)(clock() - begin) / CLOCKS_PER_SEC;
        if (piece.probability < 0) return fail("step", argv[2], "the network's call failed");
        printf("%.3f %.6f\n", seconds * (double)count, (double)piece.probability);
        fflush(stdout); /* who listens to a stream wants it at once */
        if (argc == 4 && count == room) {
            void *more = realloc(pieces, sizeof *pieces * (size_t)(room = room ? room * 2 : 1024));
            if (!more) return fail("memory", argv[2], "the system has no memory left; cut the file, or draw no picture");
            pieces = more;
        }
        if (argc == 4) pieces[count] = piece;
        ++count;
    }
    if (argc == 4 && (!(picture = fopen(argv[3], "w")) || !draw(picture, pieces, count, seconds) || fclose(picture) != 0))
        return fail("picture", argv[3], "expected a file that can be written");
    if (count > 0) fprintf(stderr, "%ld pieces, %.1f microseconds a step\n", count, busy / (double)count * 1e6);
    free(pieces), vad_close(vad);
    return 0;
}
