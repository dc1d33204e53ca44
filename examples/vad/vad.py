"""What vad.c does, by NumPy and tessera.Bundle: vad.py BUNDLE WAVE. All pieces of the file go in one call, with the bits of steps."""
import sys
import wave

import numpy as np

RATE, SAMPLES, CONTEXT, WIDTH = 16000, 512, 64, 128


class Vad:
    """A network with what it has heard. `bundle` is a tessera.Bundle."""

    def __init__(self, bundle):
        self.kernel = bundle["silero_vad"]
        self.state = {name: np.zeros(n, np.float32) for name, n in (("context", CONTEXT), ("h", WIDTH), ("c", WIDTH))}

    def __call__(self, pieces):
        """How likely somebody speaks in each of pieces [T, 512]; they follow those of the call before."""
        return np.from_dlpack(self.kernel(samples=pieces, **self.state))


def pieces_of(path):
    """Pieces of a WAV file with 16 bits and one channel, the last one filled with zeros."""
    with wave.open(path, "rb") as file:
        form = (file.getframerate(), file.getsampwidth(), file.getnchannels())
        if form != (RATE, 2, 1):
            raise SystemExit(f"error[vad.wave]: {path}: expected 16000 samples in a second, 2 bytes, 1 channel; got {form}")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
    return np.pad(samples, (0, -len(samples) % SAMPLES)).reshape(-1, SAMPLES)


if __name__ == "__main__":
    import tessera

    for number, probability in enumerate(Vad(tessera.Bundle(sys.argv[1]))(pieces_of(sys.argv[2]))):
        print(f"{number * SAMPLES / RATE:.3f} {probability:.6f}")
