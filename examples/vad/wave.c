#include "wave.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

static unsigned number(const unsigned char *at, int bytes) {
    unsigned value = 0;
    while (bytes-- > 0) value = value << 8 | at[bytes];
    return value;
}

/* Past bytes of a stream, which cannot seek. */
static int skip(FILE *file, unsigned bytes) {
    char some[512];
    while (bytes > 0) {
        const size_t most = bytes < sizeof some ? bytes : sizeof some;
        if (fread(some, 1, most, file) != most) return 0;
        bytes -= (unsigned)most;
    }
    return 1;
}

const char *wave_begin(Wave *wave, FILE *file) {
    unsigned char head[12], format[16];
    unsigned kind = 0, bytes;
    memset(wave, 0, sizeof *wave);
    wave->file = file;
    if (fread(head, 1, 12, file) != 12 || memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0)
        return "expected a WAV file (RIFF, WAVE)";
    for (;;) {
        if (fread(head, 1, 8, file) != 8) return "it has no samples (no chunk 'data')";
        bytes = number(head + 4, 4);
        if (memcmp(head, "data", 4) == 0) break;
        if (memcmp(head, "fmt ", 4) == 0 && bytes >= 16 && bytes <= 4096) {
            if (fread(format, 1, 16, file) != 16) return "it ends in its head";
            kind = number(format, 2), wave->channels = number(format + 2, 2), wave->rate = number(format + 4, 4);
            wave->bits = number(format + 14, 2), bytes -= 16;
            if (kind == 0xfffe && bytes >= 10) { /* WAVE_FORMAT_EXTENSIBLE: the kind stands in its GUID */
                if (fread(format, 1, 10, file) != 10) return "it ends in its head";
                kind = number(format + 8, 2), bytes -= 10;
            }
        }
        if (!skip(file, bytes + (bytes & 1))) return "it ends in its head";
    }
    wave->is_float = kind == 3;
    if (wave->channels < 1 || wave->channels > 64 || !((kind == 1 && wave->bits == 16) || (kind == 3 && wave->bits == 32)))
        return "expected samples of 16 bits or floats of 32, at most 64 channels; convert it: sox in.wav -b 16 out.wav";
    wave->left = bytes == 0 || bytes == 0xffffffffu ? ULLONG_MAX : bytes; /* of pipes, nobody knew the length */
    return NULL;
}

int wave_read(Wave *wave, float *samples, int count) {
    const unsigned each = wave->bits / 8 * wave->channels;
    unsigned char frame[64 * 4];
    int i;
    for (i = 0; i < count; ++i) {
        float sum = 0;
        unsigned channel;
        if (wave->left < each || fread(frame, 1, each, wave->file) != each) break;
        if (wave->left != ULLONG_MAX) wave->left -= each;
        for (channel = 0; channel < wave->channels; ++channel) {
            const uint32_t bits = number(frame + channel * (wave->bits / 8), (int)wave->bits / 8);
            float value;
            if (wave->is_float) memcpy(&value, &bits, sizeof value);
            else value = (float)(bits < 0x8000u ? (int)bits : (int)bits - 0x10000) / 32768.0f;
            sum += value;
        }
        samples[i] = sum / (float)wave->channels;
    }
    return i;
}
