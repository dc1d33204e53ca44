"""Writes a WAV file that sounds a little like speech: vad_speech.py FILE [SECONDS]. Syllables of voiced vowels and hissed consonants, in phrases
with pauses between, over faint noise: pulses of a falling pitch through three resonances (Klatt 1980)."""
import sys
import wave

import numpy as np

RATE = 16000
VOWELS = [(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480), (570, 840, 2410)]  # Peterson, Barney 1952


def resonance(x, frequency, width):
    """x through one resonance, as Klatt has it."""
    c = -np.exp(-2 * np.pi * width / RATE)
    b = 2 * np.exp(-np.pi * width / RATE) * np.cos(2 * np.pi * frequency / RATE)
    y, before, last = np.empty_like(x), 0.0, 0.0
    for n, value in enumerate(x):
        before, last = last, (1 - b - c) * value + b * last + c * before
        y[n] = last
    return y


def syllable(rng, pitch):
    hiss = rng.standard_normal(int(RATE * rng.uniform(0.03, 0.08)))
    hiss = np.diff(hiss, prepend=0) * np.hanning(len(hiss)) * 0.1
    length = int(RATE * rng.uniform(0.1, 0.22))
    phase = np.cumsum(pitch * np.linspace(1.08, 0.92, length) * (1 + 0.01 * rng.standard_normal(length)) / RATE)
    voice = np.diff(np.floor(phase), prepend=0) - np.linspace(0.01, 0.01, length)
    for formant, width in zip(VOWELS[rng.integers(len(VOWELS))], (60, 90, 150)):
        voice = resonance(voice, formant * rng.uniform(0.95, 1.05), width)
    voice *= np.minimum(1, np.minimum(np.arange(length), np.arange(length)[::-1]) / (0.02 * RATE))
    return np.concatenate([hiss, voice / np.abs(voice).max() * rng.uniform(0.3, 0.6)])


def speech(seconds, seed=3):
    rng, parts = np.random.default_rng(seed), []
    while sum(map(len, parts)) < seconds * RATE:
        parts.append(np.zeros(int(RATE * rng.uniform(0.5, 1.0))))
        pitch = rng.uniform(100, 200)
        parts += [syllable(rng, pitch * f) for f in np.linspace(1.1, 0.85, rng.integers(4, 9))]
    samples = np.concatenate(parts)[:int(seconds * RATE)]
    return samples + 0.001 * rng.standard_normal(len(samples))


if __name__ == "__main__":
    with wave.open(sys.argv[1], "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(RATE)
        file.writeframes((speech(float(sys.argv[2]) if len(sys.argv) > 2 else 6) * 32767).round().clip(-32768, 32767).astype("<i2").tobytes())
