"""A sentence encoder of BERT's kind in PyTorch and as an ONNX graph, made of the file of weights of all-MiniLM-L6-v2."""
import json
import struct

import numpy as np

HEADS, LAYERS, EPSILON = 12, 6, 1e-12


def read_safetensors(path):
    """The tensors of type F32 by name."""
    with open(path, "rb") as file:
        content = file.read()
    size = struct.unpack("<Q", content[:8])[0]
    made = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            made[name] = np.frombuffer(content[8 + size + begin:8 + size + end], "<f4").reshape(entry["shape"])
    return made


def padded(sentences):
    """ids and keep [B, T] of lists of tokens."""
    ids = np.zeros((len(sentences), max(map(len, sentences))), np.int64)
    for row, tokens in zip(ids, sentences):
        row[:len(tokens)] = tokens
    return ids, np.arange(ids.shape[1]) < np.array([[len(tokens)] for tokens in sentences])


def joined(weights, layer, kind):
    """Of queries, keys and values, one after the other."""
    return np.concatenate([weights[f"{layer}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")])


def pytorch_encoder(weights):
    """A function of ids and keep [B, T], tensors, that gives unit vectors [B, D]. Products of queries, keys and values are one."""
    import torch
    import torch.nn.functional as F
    w = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}
    layers = [f"encoder.layer.{i}" for i in range(LAYERS)]
    w.update({f"{layer}.{kind}": torch.from_numpy(joined(weights, layer, kind)) for layer in layers for kind in ("weight", "bias")})

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w[name + ".bias"])

    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], EPSILON)

    def encode(ids, keep):
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:ids.shape[1]]
        x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        sentences, tokens, width = x.shape
        for layer in layers:
            q, k, v = linear(x, layer).view(sentences, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            attended = F.scaled_dot_product_attention(q, k, v, keep[:, None, None, :]).transpose(1, 2).reshape(sentences, tokens, width)
            x = norm(x + linear(attended, layer + ".attention.output.dense"), layer + ".attention.output.LayerNorm")
            up = F.gelu(linear(x, layer + ".intermediate.dense"))
            x = norm(x + linear(up, layer + ".output.dense"), layer + ".output.LayerNorm")
        mean = (x * keep[:, :, None]).sum(1) / keep.sum(1)[:, None]
        return F.normalize(mean, dim=1, eps=EPSILON)

    def without_gradients(ids, keep):
        with torch.inference_mode():
            return encode(ids, keep)
    return without_gradients


class OnnxGraph:
    """The same as a graph over onnxruntime's own fused operations, as its optimiser of transformers makes it: inputs ids and keep, i32."""

    def __init__(self, weights):
        from onnx import TensorProto, helper, numpy_helper
        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes, self.constants, self.count = [], [], 0
        w = weights
        table = [w["embeddings.word_embeddings.weight"], w["embeddings.position_embeddings.weight"],
                 w["embeddings.token_type_embeddings.weight"], w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"]]
        x = self.embedded(table)
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}"
            attended = self.node("Attention", [x, self.constant(joined(w, layer, "weight").T), self.constant(joined(w, layer, "bias")), "keep"],
                                 domain="com.microsoft", num_heads=HEADS)
            x = self.residual(self.product(attended, w, layer + ".attention.output.dense"), x, w, layer + ".attention.output")
            up = self.node("BiasGelu", [self.product(x, w, layer + ".intermediate.dense"),
                                        self.constant(w[layer + ".intermediate.dense.bias"])], domain="com.microsoft")
            x = self.residual(self.product(up, w, layer + ".output.dense"), x, w, layer + ".output")
        kept = self.node("Unsqueeze", [self.node("Cast", ["keep"], to=TensorProto.FLOAT), self.constant(np.array([2]))])
        one = self.constant(np.array([1]))
        mean = self.node("Div", [self.node("ReduceSum", [self.node("Mul", [x, kept]), one], keepdims=0),
                                 self.node("ReduceSum", [kept, one], keepdims=0)])
        self.node("LpNormalization", [mean], axis=1, p=2, result="y")
        integers = [helper.make_tensor_value_info(name, TensorProto.INT32, ["B", "T"]) for name in ("ids", "keep")]
        graph = helper.make_graph(self.nodes, "encoder", integers, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", "D"])],
                                  self.constants)
        self.model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)])

    def constant(self, array):
        self.count += 1
        self.constants.append(self.numpy_helper.from_array(np.ascontiguousarray(array), f"c{self.count}"))
        return f"c{self.count}"

    def node(self, kind, inputs, domain="", result=None, **attributes):
        self.count += 1
        result = result or f"t{self.count}"
        self.nodes.append(self.helper.make_node(kind, inputs, [result], domain=domain, **attributes))
        return result

    def embedded(self, table):
        words, places, types, gamma, beta = table
        tokens = self.node("Slice", [self.node("Shape", ["ids"]), self.constant(np.array([1])), self.constant(np.array([2]))])
        place = self.node("Slice", [self.constant(places + types[0]), self.constant(np.array([0])), tokens, self.constant(np.array([0]))])
        x = self.node("Add", [self.node("Gather", [self.constant(words), "ids"]), place])
        return self.node("LayerNormalization", [x, self.constant(gamma), self.constant(beta)], axis=-1, epsilon=EPSILON)

    def product(self, x, w, name):
        return self.node("MatMul", [x, self.constant(w[name + ".weight"].T)])

    def residual(self, x, skip, w, name):
        norm = [w[f"{name}.LayerNorm.weight"], w[f"{name}.LayerNorm.bias"], w[f"{name}.dense.bias"]]
        return self.node("SkipLayerNormalization", [x, skip, *map(self.constant, norm)], domain="com.microsoft", epsilon=EPSILON)


def onnxruntime_encoder(weights, threads):
    """A function of ids and keep [B, T], arrays of i32."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(OnnxGraph(weights).model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda ids, keep: session.run(None, {"ids": ids, "keep": keep})[0]
