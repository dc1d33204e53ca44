"""minilm.py <folder of all-MiniLM-L6-v2> <model.onnx>: writes the encoder as transformers' exporter for ONNX writes it, opset 17: dynamic
batch and sequence, layer norms as chains of nodes, GELU by Erf, masks expanded by shapes. Inputs input_ids and
attention_mask, i64 [batch, sequence]; output last_hidden_state [batch, sequence, 384]."""
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

HEADS, LAYERS, WIDTH, EPSILON = 12, 6, 384, 1e-12


class Exported:
    def __init__(self, weights: dict[str, np.ndarray]):
        self.weights, self.nodes, self.constants, self.count = weights, [], [], 0

    def constant(self, value, dtype=np.float32) -> str:
        self.count += 1
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), f"constant_{self.count}"))
        return f"constant_{self.count}"

    def weight(self, name: str, transposed: bool = False) -> str:
        array = self.weights[name]
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array.T) if transposed else array, name))
        return name

    def node(self, op: str, *inputs: str, result: str | None = None, **attributes) -> str:
        self.count += 1
        self.nodes.append(helper.make_node(op, list(inputs), [result or f"{op}_{self.count}"], name=f"{op}_{self.count}", **attributes))
        return self.nodes[-1].output[0]

    def linear(self, x: str, name: str) -> str:
        return self.node("Add", self.weight(name + ".bias"), self.node("MatMul", x, self.weight(name + ".weight", True)))

    def norm(self, x: str, name: str, result: str | None = None) -> str:
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        variance = self.node("ReduceMean", self.node("Pow", centred, self.constant(2)), axes=[-1])
        scaled = self.node("Div", centred, self.node("Sqrt", self.node("Add", variance, self.constant(EPSILON))))
        return self.node("Add", self.node("Mul", scaled, self.weight(name + ".weight")), self.weight(name + ".bias"), result=result)

    def gelu(self, x: str) -> str:
        erf = self.node("Erf", self.node("Div", x, self.constant(np.sqrt(2))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.constant(1))), self.constant(0.5))

    def extent(self, x: str, axis: int) -> str:
        return self.node("Gather", self.node("Shape", x), self.constant(axis, np.int64), axis=0)

    def shape(self, x: str, *rest: int) -> str:
        parts = [self.node("Unsqueeze", self.extent(x, axis), self.constant([0], np.int64)) for axis in (0, 1)]
        return self.node("Concat", *parts, *(self.constant([n], np.int64) for n in rest), axis=0)

    def heads(self, x: str, order: list[int]) -> str:
        return self.node("Transpose", self.node("Reshape", x, self.shape(x, HEADS, WIDTH // HEADS)), perm=order)

    def mask(self) -> str:
        four = self.node("Unsqueeze", "attention_mask", self.constant([1, 2], np.int64))
        batch, tokens = (self.node("Unsqueeze", self.extent("attention_mask", axis), self.constant([0], np.int64)) for axis in (0, 1))
        wanted = self.node("Concat", batch, self.constant([1], np.int64), tokens, tokens, axis=0)
        ones = self.node("ConstantOfShape", self.constant([4], np.int64), value=numpy_helper.from_array(np.array([1], np.int64)))
        negative = self.node("Mul", ones, self.constant(-1, np.int64))
        shape = self.node("Where", self.node("Equal", wanted, negative), ones, wanted)
        kept = self.node("Cast", self.node("Expand", four, shape), to=TensorProto.FLOAT)
        inverted = self.node("Sub", self.constant(1), kept)
        return self.node("Where", self.node("Cast", inverted, to=TensorProto.BOOL), self.constant(np.finfo(np.float32).min), inverted)

    def embedded(self) -> str:
        tokens = self.node("Unsqueeze", self.extent("input_ids", 1), self.constant([0], np.int64))
        zero, one = (self.constant([n], np.int64) for n in (0, 1))
        places = self.node("Slice", self.constant(np.arange(512)[None], np.int64), zero, tokens, one)
        words = self.node("Gather", self.weight("embeddings.word_embeddings.weight"), "input_ids")
        kinds = self.node("ConstantOfShape", self.node("Shape", "input_ids"), value=numpy_helper.from_array(np.array([0], np.int64)))
        typed = self.node("Add", words, self.node("Gather", self.weight("embeddings.token_type_embeddings.weight"), kinds))
        return self.norm(self.node("Add", typed, self.node("Gather", self.weight("embeddings.position_embeddings.weight"), places)),
                         "embeddings.LayerNorm")

    def attention(self, x: str, mask: str, layer: str) -> str:
        q, k, v = (self.heads(self.linear(x, f"{layer}.attention.self.{part}"), order)
                   for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])))
        scores = self.node("Add", self.node("Div", self.node("MatMul", q, k), self.constant(np.sqrt(WIDTH // HEADS))), mask)
        seen = self.node("Transpose", self.node("MatMul", self.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.node("Reshape", seen, self.shape(x, WIDTH))

    def model(self) -> onnx.ModelProto:
        mask, x = self.mask(), self.embedded()
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}"
            out = self.linear(self.attention(x, mask, layer), layer + ".attention.output.dense")
            x = self.norm(self.node("Add", out, x), layer + ".attention.output.LayerNorm")
            up = self.gelu(self.linear(x, layer + ".intermediate.dense"))
            x = self.norm(self.node("Add", self.linear(up, layer + ".output.dense"), x), layer + ".output.LayerNorm",
                          "last_hidden_state" if i == LAYERS - 1 else None)
        infos = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"]) for n in ("input_ids", "attention_mask")]
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH])
        graph = helper.make_graph(self.nodes, "minilm", infos, [output], self.constants)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


model = Exported(load_file(Path(sys.argv[1]) / "model.safetensors")).model()
onnx.checker.check_model(model)
onnx.save(model, sys.argv[2])
