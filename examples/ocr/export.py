#!/usr/bin/env python3
"""Takes the weights of PP-OCRv4's recognition network out of its ONNX file, named and laid out as generator.cpp declares them, and its
characters. Every node of the graph has to be the one that the generator's network has at that place, or it stops and says which is not.

    export.py <ch_PP-OCRv4_rec_infer.onnx> <folder to write model.safetensors and characters.txt to>"""
import sys
from pathlib import Path

import numpy as np
import onnx
from safetensors.numpy import save_file

# taps, outputs, strides down and across, channels of the squeeze
BLOCKS = ([(3, 32, 1, 1, 0), (3, 64, 1, 1, 0), (3, 64, 1, 1, 0), (3, 128, 2, 1, 0), (3, 128, 1, 1, 0), (3, 240, 1, 2, 0)] +
          [(5, 240, 1, 1, 0)] * 4 + [(5, 480, 2, 1, 60), (5, 480, 1, 1, 120), (5, 480, 2, 1, 0), (5, 480, 1, 1, 0)])
REPEATED = range(6, 10)  # of those, the ones that are stacked as b6


class Graph:
    """Reads nodes in order. What only computes shapes is passed over."""
    SHAPES = {"Constant", "Shape", "Cast", "Slice", "Concat", "Reshape", "Squeeze", "Transpose"}

    def __init__(self, model):
        self.constants = {n.output[0]: onnx.numpy_helper.to_array(n.attribute[0].t) for n in model.graph.node if n.op_type == "Constant"}
        self.nodes = iter([n for n in model.graph.node if n.op_type not in self.SHAPES])

    def take(self, op, **attributes):
        """The next node's constants, in order of its inputs."""
        node = next(self.nodes, None)
        has = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} if node else {}
        if node is None or node.op_type != op or any(has.get(k) != v for k, v in attributes.items()):
            sys.exit(f"error[ocr.graph]: expected {op} {attributes}, got {node.op_type if node else 'the end'} {has}; this is another network")
        return [self.constants[i].astype(np.float64) for i in node.input if i in self.constants]

    def end(self):
        if (node := next(self.nodes, None)) is not None:
            sys.exit(f"error[ocr.graph]: expected the end, got {node.op_type}; this is another network")

    def convolution(self, taps, outputs, strides=(1, 1), group=1, pads=None):
        pads = pads or [taps[0] // 2, taps[1] // 2] * 2
        w, *b = self.take("Conv", kernel_shape=list(taps), strides=list(strides), group=group, dilations=[1, 1], pads=pads)
        if len(w) != outputs:
            sys.exit(f"error[ocr.graph]: expected {outputs} channels, got {len(w)}; this is another network")
        return w, b[0] if b else np.zeros(outputs)

    def normalized_convolution(self, *arguments, **named):
        """With the batch normalization behind it folded in."""
        w, b = self.convolution(*arguments, **named)
        gamma, beta, mean, variance = self.take("BatchNormalization")
        factor = gamma / np.sqrt(variance + 1e-5)
        return w * factor[:, None, None, None], (b - mean) * factor + beta

    def swish(self):
        self.take("Mul"), self.take("Sigmoid"), self.take("Mul")

    def layernorm(self):
        for op in ["ReduceMean", "Sub", "Pow", "ReduceMean", "Add", "Sqrt", "Div"]:
            self.take(op)
        return self.take("Mul")[0], self.take("Add")[0]

    def linear(self):
        return self.take("MatMul")[0], self.take("Add")[0]


def weights(graph):
    t = {}

    def activated(name, w, b):
        """scale (x + b) + shift before and after x clip(x + 3, 0, 6) / 6: the first goes into the weights."""
        (scale,), (shift,) = graph.take("Mul"), graph.take("Add")
        graph.take("Add"), graph.take("Clip"), graph.take("Mul"), graph.take("Div")
        t[f"{name}_w"], t[f"{name}_b"] = w * scale, b * scale + shift
        t[f"{name}_scale"], t[f"{name}_shift"] = (np.broadcast_to(graph.take(op)[0], b.shape) for op in ("Mul", "Add"))

    by_row = lambda w: w.transpose(2, 3, 1, 0)  # (O, C, R, S) to (R, S, C, O)
    w, t["stem_b"] = graph.normalized_convolution((3, 3), 16, (2, 2))
    t["stem_w"] = by_row(w)
    channels = 16
    for i, (taps, outputs, down, across, squeeze) in enumerate(BLOCKS):
        name = f"b{i}"
        w, b = graph.convolution((taps, taps), channels, (down, across), group=channels)
        activated(f"{name}_dw", by_row(w)[:, :, 0], b)
        if squeeze:
            graph.take("GlobalAveragePool")
            for part, width, op in [("squeeze", squeeze, "Relu"), ("excite", channels, "HardSigmoid")]:
                w, t[f"{name}_{part}_b"] = graph.convolution((1, 1), width)
                t[f"{name}_{part}_w"] = by_row(w)[0, 0]
                graph.take(op, **({"alpha": np.float32(0.1666667), "beta": 0.5} if op == "HardSigmoid" else {}))
            graph.take("Mul")
        w, b = graph.convolution((1, 1), outputs)
        activated(f"{name}_pw", by_row(w)[0, 0], b)
        channels = outputs
    for part in [f"{kind}_{what}" for kind in ("dw", "pw") for what in ("w", "b", "scale", "shift")]:
        t[f"b6_{part}"] = np.stack([t.pop(f"b{i}_{part}") for i in REPEATED])
    for i in range(REPEATED.stop, len(BLOCKS)):  # the ones behind count on
        for name in [n for n in t if n.startswith(f"b{i}_")]:
            t[name.replace(f"b{i}", f"b{i - len(REPEATED) + 1}")] = t.pop(name)

    def swish_convolution(taps, outputs, pads=None):
        w, b = graph.normalized_convolution(taps, outputs, pads=pads)
        graph.swish()
        return by_row(w)[0], b

    graph.take("AveragePool", kernel_shape=[3, 2], strides=[3, 2], pads=[0, 0, 0, 0])
    t["neck_w"], t["neck_b"] = swish_convolution((1, 3), 60)
    w, t["widen_b"] = swish_convolution((1, 1), 120)
    t["widen_w"] = w[0]
    layers = []
    for _ in range(2):
        layer = dict(zip(("gamma", "beta"), graph.layernorm()))
        layer["w_qkv"], layer["b_qkv"] = graph.linear()
        for op in ["Mul", "MatMul", "Softmax", "MatMul"]:
            graph.take(op)
        layer["w_out"], layer["b_out"] = graph.linear()
        graph.take("Add")
        layer["gamma2"], layer["beta2"] = graph.layernorm()
        layer["w_up"], layer["b_up"] = graph.linear()
        graph.swish()
        layer["w_down"], layer["b_down"] = graph.linear()
        graph.take("Add")
        layers.append(layer)
    t |= {f"mix_{part}": np.stack([layer[part] for layer in layers]) for part in layers[0]}
    t["norm_gamma"], t["norm_beta"] = graph.layernorm()
    w, t["back_b"] = swish_convolution((1, 1), 480)
    t["back_w"] = w[0]
    w, t["head_b"] = swish_convolution((1, 3), 60)
    t["head_w"], t["head_w_z"] = w[:, :480], w[:, 480:]
    w, t["last_b"] = swish_convolution((1, 1), 120)
    t["last_w"] = w[0]
    t["characters_w"], t["characters_b"] = graph.linear()
    graph.take("Softmax")
    graph.end()
    return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in t.items()}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    model, out = onnx.load(sys.argv[1]), Path(sys.argv[2])
    tensors = weights(Graph(model))
    characters = {p.key: p.value for p in model.metadata_props}["character"].splitlines()
    assert len(characters) + 2 == tensors["characters_b"].size, "a blank first, a space last"
    out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out / "model.safetensors")
    (out / "characters.txt").write_text("".join(c + "\n" for c in characters + [" "]), encoding="utf-8")
    print(f"{len(tensors)} tensors, {sum(v.nbytes for v in tensors.values())} bytes, {len(characters) + 1} characters")


if __name__ == "__main__":
    main()
