"""What is compared: rows as values. Shapes of models that users run, and a seeded sample, so that nothing is tuned to a list."""
import dataclasses
import math
import random
import re


@dataclasses.dataclass(frozen=True)
class Row:
    kind: str          # what is computed: a key of CLASSES
    model: str         # whose shape it is, or "sample"
    shape: tuple       # (name, extent) by the kind's own names
    dtype: str = "f32"
    prepared: bool = False  # weights are constant: each side has them in the form that it likes best, made before the time begins
    cold: bool = False      # the caches hold nothing of it, as for weights that are read once per token
    threads: int = 1
    quick: bool = False

    @property
    def extents(self):
        return dict(self.shape)

    @property
    def group(self):
        if self.threads > 1:
            return f"on {self.threads} threads"
        return CLASSES[self.kind] + ("" if self.dtype == "f32" else f" {self.dtype}") + (" cold" if self.cold else "")

    @property
    def name(self):
        words = [self.model, self.kind, self.dtype, " ".join(f"{n}={e}" for n, e in self.shape)]
        words += ["prepared"] * self.prepared + ["cold"] * self.cold + [f"{self.threads} threads"] * (self.threads > 1)
        return " ".join(words)


CLASSES = {"product": "product", "gemv": "gemv", "attention": "attention", "causal": "causal attention", "decode": "decode", "softmax": "softmax",
           "layernorm": "layernorm", "rmsnorm": "rmsnorm", "conv": "convolution", "depthwise": "depthwise", "fft": "FFT"}


# Calls from Python take up to 15 us by themselves: what a core does in less is no comparison of kernels.
LEAST_WORK = 150_000  # elements moved, or 32 operations each


def windows(e):
    """Positions of a window along each dim."""
    return (e["HW"] + 2 * e["padding"] - e["R"]) // e["stride"] + 1


def operations(row):
    """Floating-point or integer operations, a product and its sum being two; those of a transform as FFTW's authors count them."""
    e = row.extents
    match row.kind:
        case "product":
            return 2 * e["M"] * e["N"] * e["K"]
        case "gemv":
            return 2 * e["M"] * e["K"]
        case "attention":
            return 4 * e["H"] * e["S"] ** 2 * e["D"]
        case "causal":
            return 2 * e["H"] * e["S"] * (e["S"] + 1) * e["D"]
        case "decode":
            return 4 * e["H"] * e["G"] * e["T"] * e["D"]
        case "conv":
            return 2 * e["batch"] * windows(e) ** 2 * e["O"] * e["C"] * e["R"] ** 2
        case "depthwise":
            return 2 * e["batch"] * windows(e) ** 2 * e["C"] * e["R"] ** 2
        case "fft":
            return 5 * e["points"] * math.log2(e["points"]) * e["batch"]
        case "softmax" | "layernorm" | "rmsnorm":
            return 0  # what counts is what they move


def traffic(row):
    """Elements of each argument that has to be read and of the result that has to be written once."""
    e = row.extents
    match row.kind:
        case "product":
            return (e["M"] * e["K"], e["K"] * e["N"]), e["M"] * e["N"]
        case "gemv":
            return (e["M"] * e["K"], e["K"]), e["M"]
        case "attention" | "causal":
            one = e["H"] * e["S"] * e["D"]
            return (one, one, one), one
        case "decode":
            queries, cache = e["H"] * e["G"] * e["D"], e["H"] * e["T"] * e["D"]
            return (queries, cache, cache), queries
        case "conv":
            return (e["batch"] * e["HW"] ** 2 * e["C"], e["R"] ** 2 * e["C"] * e["O"]), e["batch"] * windows(e) ** 2 * e["O"]
        case "depthwise":
            return (e["batch"] * e["HW"] ** 2 * e["C"], e["R"] ** 2 * e["C"]), e["batch"] * windows(e) ** 2 * e["C"]
        case "fft":
            return (2 * e["points"] * e["batch"],), 2 * e["points"] * e["batch"]
        case "softmax" | "layernorm" | "rmsnorm":
            return (e["M"] * e["N"],), e["M"] * e["N"]


def elements_moved(row):
    read, written = traffic(row)
    return sum(read) + written


def bytes_moved(row):
    """Read and written."""
    read, written = traffic(row)
    if row.dtype == "int4":  # and a scale in f32 for each 32 weights
        rows, weights = read
        return rows * 4 + weights * 5 // 8, written * 4
    of_input, of_output = {"f32": (4, 4), "bf16": (2, 2), "u8s8": (1, 4)}[row.dtype]
    return sum(read) * of_input, written * of_output


def of(kind, names, model, *extents, **others):
    return Row(kind, model, tuple(zip(names.split(), extents)), **others)


def product(model, m, n, k, **others):
    return of("product", "M N K", model, m, n, k, **{"prepared": True, **others})


def attention(model, h, s, d, causal=False, **others):
    return of("causal" if causal else "attention", "H S D", model, h, s, d, **others)


def decoding(model, h, g, t, d, **others):
    """A step: groups of g queries, each over the t keys of one of h heads, those of all sequences counted."""
    return of("decode", "H G T D", model, h, g, t, d, cold=True, **others)


def norm(kind, model, m, n, **others):
    return of(kind, "M N", model, m, n, **others)


def conv(model, batch, hw, c, o, r, stride=1, **others):
    """With the padding that keeps the extent where the stride is 1."""
    return of("conv", "batch HW C O R stride padding", model, batch, hw, c, o, r, stride, r // 2, prepared=True, **others)


def depthwise(model, batch, hw, c, r, stride=1, **others):
    return of("depthwise", "batch HW C R stride padding", model, batch, hw, c, r, stride, r // 2, **others)


def of_models():
    bert, vit, resnet, mobile, whisper, decode = "BERT-base", "ViT-S/16", "ResNet-50", "MobileNetV2", "Whisper-tiny", "Llama-like"
    yield from (product(bert, 128, 3072, 768, quick=True), product(bert, 128, 768, 3072), product(bert, 128, 768, 768),
                product(bert, 16, 768, 768), product(bert, 1024, 3072, 768), product(bert, 1024, 3072, 768, threads=2),
                product(bert, 1024, 768, 3072), product(vit, 197, 1536, 384), product(vit, 1576, 384, 1536), product(vit, 197, 384, 384),
                product(whisper, 1500, 1536, 384), product(whisper, 1, 384, 384), product(resnet, 8, 1000, 2048),
                product(resnet, 1, 1000, 2048))
    for dtype in ("bf16", "u8s8"):
        yield from (product(bert, 128, 768, 768, dtype=dtype), product(bert, 1024, 3072, 768, dtype=dtype, quick=dtype == "u8s8"),
                    product(vit, 197, 1536, 384, dtype=dtype), product(bert, 1024, 3072, 768, dtype=dtype, threads=2))
    for m in (1, 8, 128):
        yield product(decode, m, 4096, 4096, dtype="int4", quick=m == 1)
    for n, k in ((2048, 2048), (5632, 2048), (4096, 4096), (4096, 11008)):
        yield of("gemv", "M K", decode, n, k, cold=True, quick=n == 5632)
        if n in (2048, 4096):
            yield of("gemv", "M K", decode, n, k, cold=True, dtype="bf16")
    yield of("gemv", "M K", decode, 4096, 4096, cold=True, threads=2)
    yield from (product(decode, 8, 2048, 2048, cold=True), product(decode, 8, 4096, 4096, cold=True),
                product(decode, 8, 4096, 4096, cold=True, dtype="bf16"))

    yield from (attention(bert, 12, 128, 64, quick=True), attention(bert, 12, 512, 64), attention(bert, 96, 128, 64),
                attention(bert, 12, 16, 64), attention(bert, 12, 512, 64, threads=2), attention(bert, 12, 512, 64, dtype="bf16"), attention(vit, 6, 197, 64),
                attention(vit, 48, 197, 64), attention(whisper, 6, 1500, 64), attention(whisper, 6, 448, 64, causal=True),
                attention(decode, 32, 128, 128, causal=True), attention(decode, 32, 1024, 128, causal=True),
                attention(decode, 32, 512, 128, causal=True, dtype="bf16"))
    yield from (decoding(decode, 8, 4, 4096, 128, quick=True), decoding(decode, 128, 4, 4096, 128), decoding(decode, 32, 1, 4096, 128),
                decoding(decode, 8, 4, 4096, 128, threads=2), decoding(decode, 8, 4, 4096, 128, dtype="bf16"))

    yield from (norm("softmax", bert, 12 * 128, 128), norm("softmax", bert, 96 * 512, 512), norm("softmax", bert, 96 * 512, 512, threads=2),
                norm("softmax", vit, 6 * 197, 197), norm("softmax", whisper, 6 * 1500, 1500), norm("softmax", decode, 8, 32000, quick=True),
                norm("layernorm", bert, 128, 768), norm("layernorm", bert, 16384, 768, quick=True), norm("layernorm", vit, 1576, 384),
                norm("layernorm", bert, 16384, 768, threads=2), norm("layernorm", whisper, 1500, 384),
                norm("rmsnorm", decode, 8, 4096), norm("rmsnorm", decode, 512, 2048), norm("rmsnorm", decode, 4096, 4096))

    yield from (conv(resnet, 1, 224, 3, 64, 7, 2), conv(resnet, 1, 56, 64, 64, 3, quick=True), conv(resnet, 1, 28, 128, 128, 3),
                conv(resnet, 1, 14, 256, 256, 3), conv(resnet, 1, 7, 512, 512, 3), conv(resnet, 1, 56, 128, 128, 3, 2),
                conv(resnet, 8, 28, 128, 128, 3),
                conv(resnet, 1, 28, 128, 128, 3, threads=2), conv(resnet, 1, 56, 64, 256, 1), conv(resnet, 1, 56, 256, 64, 1),
                conv(resnet, 1, 14, 1024, 256, 1), conv(resnet, 1, 7, 512, 2048, 1), conv(resnet, 1, 56, 256, 512, 1, 2),
                conv(resnet, 8, 14, 256, 1024, 1), conv(mobile, 1, 224, 3, 32, 3, 2), conv(mobile, 1, 56, 24, 144, 1),
                conv(mobile, 1, 14, 384, 64, 1), conv(mobile, 1, 7, 320, 1280, 1),
                depthwise(mobile, 1, 112, 32, 3), depthwise(mobile, 1, 112, 96, 3, 2), depthwise(mobile, 1, 56, 144, 3, quick=True),
                depthwise(mobile, 1, 14, 384, 3), depthwise(mobile, 1, 7, 960, 3), depthwise(mobile, 8, 14, 384, 3))

    for points, batch in ((256, 8), (1000, 1), (1024, 8), (1500, 8), (16384, 1)):
        yield of("fft", "points batch", "transforms", points, batch)


def sample(seed, each):
    """Shapes that nobody chose: `each` of a kind, spread evenly over the logarithms of their extents."""
    draw = random.Random(seed)

    def between(low, high):
        return round(low * (high / low) ** draw.random())

    made = []

    def add(times, make):
        while times:
            row = make()
            if elements_moved(row) + operations(row) / 32 > LEAST_WORK:
                made.append(dataclasses.replace(row, model="sample"))
                times -= 1

    add(2 * each, lambda: product("", between(1, 700), between(8, 2000), between(8, 2000), prepared=draw.random() < 0.5))
    for dtype in ("bf16", "u8s8"):
        add(each, lambda d=dtype: product("", between(1, 500), between(16, 1500), between(16, 1500), dtype=d))
    add(each, lambda: attention("", between(1, 16), between(8, 700), draw.choice((32, 40, 64, 80, 96))))
    add(each, lambda: attention("", between(1, 16), between(8, 700), draw.choice((32, 40, 64, 80, 96)), causal=True))
    add(each, lambda: norm("softmax", "", between(16, 3000), between(10, 5000)))
    for kind in ("layernorm", "rmsnorm"):
        add(each, lambda k=kind: norm(k, "", between(16, 3000), between(50, 3000)))
    add(2 * each, lambda: conv("", 1, between(7, 60), between(3, 300), between(8, 300), draw.choice((1, 3, 3, 5)), draw.choice((1, 1, 2))))
    add(each, lambda: depthwise("", 1, between(7, 80), between(8, 600), draw.choice((3, 5)), draw.choice((1, 2))))
    add(each, lambda: of("gemv", "M K", "", between(100, 5000), between(100, 5000), cold=draw.random() < 0.5))
    return made


def all_rows(seed=1, each=4):
    """Each once, those of a group together, several threads last."""
    rows = sorted(dict.fromkeys([*of_models(), *sample(seed, each)]), key=lambda row: (row.threads, list(CLASSES).index(row.kind)))
    groups = list(dict.fromkeys(row.group for row in rows))
    return sorted(rows, key=lambda row: groups.index(row.group))


def select(rows, regex, quick):
    """Those whose name has the regular expression; of them only the quick ones, if `quick`. Leaves the program where there are none."""
    try:
        found = [row for row in rows if re.search(regex, row.name) and (row.quick or not quick)]
    except re.error as error:
        raise SystemExit(f"error[peers.rows]: --rows '{regex}' is no regular expression: {error}. Brackets and the like take a backslash before "
                         "them") from error
    if not found:
        raise SystemExit(f"error[peers.rows]: none of the {len(rows)} rows has '{regex}' in its name{' and is quick' if quick else ''}. --list "
                         "shows their names")
    return found
