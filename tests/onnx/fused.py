"""fused.py <folder>: nodes of the domain com.microsoft, resizes of constants, products between quantizers, and element-wise operators at
special values, as tests like those of collect.py, with what onnxruntime makes of them."""
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def codes(dtype: type, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max + 1, shape).astype(dtype)


def weights(*shape: int) -> np.ndarray:
    """Seven bits: on processors without VNNI onnxruntime adds pairs of products in 16 bits, and saturates."""
    return random.integers(-64, 64, shape).astype(np.int8)


def ints(most: int, *shape: int) -> np.ndarray:
    return random.integers(0, most, shape).astype(np.int32)


def scale(*shape: int) -> np.ndarray:
    return np.abs(normal(*shape)) * np.float32(0.02) + np.float32(0.01)


def zero(number: int, dtype: type) -> np.ndarray:
    return np.array(number, dtype)


# (name, operator, inputs, from which one on they are constants, how many outputs or which ones, attributes, domain)
MS = "com.microsoft"
i8, u8 = np.int8, np.uint8
CASES = [
    ("skip_layernorm", "SkipLayerNormalization", [normal(2, 5, 8), normal(2, 5, 8), normal(8), normal(8)], 2, 1, {"epsilon": 1e-5}, MS),
    ("skip_layernorm_bias_sum", "SkipLayerNormalization", [normal(2, 5, 8), normal(2, 5, 8), normal(8), normal(8), normal(8)],
     2, 4, {}, MS),
    ("skip_rms", "SkipSimplifiedLayerNormalization", [normal(2, 5, 8), normal(2, 5, 8), normal(8)], 2, 1, {"epsilon": 1e-5}, MS),
    ("rms", "SimplifiedLayerNormalization", [normal(2, 5, 8), normal(8)], 1, 1, {"epsilon": 1e-5}, ""),
    ("gelu", "Gelu", [normal(3, 7)], 1, 1, {}, MS),
    ("bias_gelu", "BiasGelu", [normal(3, 7), normal(7)], 1, 1, {}, MS),
    ("fast_gelu", "FastGelu", [normal(3, 7)], 1, 1, {}, MS),
    ("fast_gelu_bias", "FastGelu", [normal(3, 7), normal(7)], 1, 1, {}, MS),
    ("quick_gelu", "QuickGelu", [normal(3, 7)], 1, 1, {"alpha": 1.5}, MS),
    ("fused_matmul", "FusedMatMul", [normal(2, 5, 3), normal(2, 5, 4)], 2, 1, {"transA": 1, "alpha": 0.5}, MS),
    ("fused_matmul_b", "FusedMatMul", [normal(2, 5, 3), normal(4, 3)], 1, 1, {"transB": 1}, MS),
    *((f"fused_conv_{a.lower()}", "FusedConv", [normal(1, 3, 8, 8), normal(4, 3, 3, 3), normal(4)], 1, 1,
       {"activation": a, "kernel_shape": [3, 3], "pads": [1, 1, 1, 1]} | ({"activation_params": p} if p else {}), MS)
      for a, p in (("Relu", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4]), ("Tanh", []))),
    ("fused_conv_sum", "FusedConv", [normal(1, 3, 8, 8), normal(4, 3, 3, 3), normal(4), normal(1, 4, 6, 6)], 1, 1,
     {"activation": "Relu", "kernel_shape": [3, 3]}, MS),
    ("fused_gemm", "FusedGemm", [normal(5, 3), normal(4, 3), normal(4)],
     1, 1, {"transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.3}, MS),
    ("matmul_integer_to_float", "MatMulIntegerToFloat", [codes(u8, 4, 8), weights(8, 6),
     scale(), scale(6), zero(9, u8), zero(3, i8), normal(6)],
     1, 1, {}, MS),
    ("dynamic_quantize_matmul", "DynamicQuantizeMatMul", [normal(4, 8), weights(8, 6), scale(), zero(3, i8), normal(6)], 1, 1, {}, MS),
    ("qlinear_add", "QLinearAdd", [codes(u8, 4, 8), scale(), zero(7, u8), codes(u8, 8), scale(), zero(120, u8), scale(), zero(90, u8)],
     1, 1, {}, MS),
    ("qlinear_mul", "QLinearMul", [codes(i8, 4, 8), scale(), zero(7, i8), codes(i8, 8), scale(), zero(-20, i8), scale(), zero(5, i8)],
     1, 1, {}, MS),
    ("qlinear_sigmoid", "QLinearSigmoid", [codes(u8, 40), scale(), zero(128, u8), np.float32(1 / 256), zero(0, u8)], 1, 1, {}, MS),
    ("attention", "Attention", [normal(2, 5, 8), normal(8, 24), normal(24)], 1, 1, {"num_heads": 2}, MS),
    ("attention_mask", "Attention", [normal(2, 5, 8), normal(8, 24), normal(24), np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)],
     1, 1, {"num_heads": 2, "mask_filter_value": -1000.0}, MS),
    ("attention_lengths", "Attention", [normal(2, 5, 8), normal(8, 24), normal(24), np.array([3, 5], np.int32)], 1, 1, {"num_heads": 4}, MS),
    ("attention_causal_sizes", "Attention", [normal(2, 5, 8), normal(8, 20), normal(20)], 1, 1,
     {"num_heads": 2, "unidirectional": 1, "qkv_hidden_sizes": [8, 8, 4], "scale": 0.3}, MS),
    ("attention_past", "Attention", [normal(2, 3, 8), normal(8, 24), normal(24), None, normal(2, 2, 2, 4, 4)], 1, (0, 1),
     {"num_heads": 2, "unidirectional": 1}, MS),
    ("attention_bias", "Attention", [normal(2, 5, 8), normal(8, 24), normal(24), None, None, normal(2, 2, 5, 5)], 1, 1, {"num_heads": 2}, MS),
    ("multi_head", "MultiHeadAttention", [normal(2, 5, 8), normal(2, 7, 8), normal(2, 7, 12)], 3, 1, {"num_heads": 4}, MS),
    ("multi_head_bias_mask", "MultiHeadAttention", [normal(2, 5, 8), normal(2, 7, 8), normal(2, 7, 8), normal(24),
                                                    np.array([[1, 1, 1, 0, 0, 0, 0], [1] * 7], np.int32), normal(1, 4, 5, 7)],
     3, 1, {"num_heads": 4}, MS),
    ("multi_head_past", "MultiHeadAttention", [normal(2, 3, 8), normal(2, 3, 8), normal(2, 3, 8), None, None, None, normal(2, 2, 4, 4),
                                               normal(2, 2, 4, 4)],
     3, (0, 1, 2), {"num_heads": 2, "unidirectional": 1}, MS),
    ("embed", "EmbedLayerNormalization", [ints(9, 2, 5), ints(2, 2, 5), normal(9, 8), normal(6, 8), normal(2, 8), normal(8), normal(8),
                                          np.array([[1, 1, 1, 0, 0], [1] * 5], np.int32)],
     2, (0, 1), {"epsilon": 1e-5}, MS),
    ("embed_positions", "EmbedLayerNormalization", [ints(9, 2, 5), None, normal(9, 8), normal(6, 8), None, normal(8), normal(8), None,
                                                    ints(6, 2, 5)],
     1, (0, 2), {}, MS),
    ("qlinear_leaky", "QLinearLeakyRelu", [codes(i8, 40), scale(), zero(3, i8), scale(), zero(-8, i8)], 1, 1, {"alpha": 0.2}, MS),
]

# Zeros, subnormal numbers, what overflows when it is squared or its exponential taken, infinities, and no number.
SPECIAL = np.array([0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1e-40, -1e-40, 1e-30, 60, -60, 88.9, -88.9, 89.3, -89.3, 100, -100, 1e4, -1e4, 1e9, -1e9,
                    1.1e9, 1e19, -1e19, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32)
CASES += [(f"special_{op.lower()}", op, [SPECIAL], 1, 1, {}, "") for op in (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cosh", "Elu", "Erf", "Exp", "Floor", "HardSigmoid",
    "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Tanh", "ThresholdedRelu")]
ANGLES = SPECIAL[(np.abs(SPECIAL) <= 1e4) | ~np.isfinite(SPECIAL)]
CASES += [(f"special_{op.lower()}", op, [ANGLES], 1, 1, {}, "") for op in ("Cos", "Sin", "Tan")]
CASES += [("special_shrink_bias", "Shrink", [SPECIAL], 1, 1, {"lambd": 1.5, "bias": 0.25}, ""),
          ("special_thresholded_relu", "ThresholdedRelu", [SPECIAL], 1, 1, {"alpha": -1.0}, "")]


def lstm() -> tuple:
    """onnxruntime also rounds what it multiplies in DynamicQuantizeLSTM to codes, so what is expected is an LSTM of the codes' numbers."""
    W, R, by, zeros = weights(2, 3, 16), weights(2, 4, 16), [scale(2), scale(2)], [np.array([1, -3], i8), np.array([0, 5], i8)]
    x, bias, state, cell = normal(5, 2, 3), normal(2, 32), normal(2, 2, 4), normal(2, 2, 4)
    numbers = [((w.astype(np.float32) - z[:, None, None]) * s[:, None, None]).transpose(0, 2, 1) for w, s, z in zip((W, R), by, zeros)]
    attributes = {"direction": "bidirectional", "hidden_size": 4}
    plain = ("LSTM", [x, *numbers, bias, None, state, cell], "")
    return ("dynamic_quantize_lstm", "DynamicQuantizeLSTM",
            [x, W, R, bias, None, state, cell, None, by[0], zeros[0], by[1], zeros[1]], 1, 1,
            attributes, MS, plain)


def results_of(model: onnx.ModelProto, wanted: list[str], feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(wanted, feeds)


def write(folder: Path, name, op, inputs, first_constant, outputs, attributes, domain, plain=None) -> None:
    """`plain`: an operator, its inputs and its domain, whose results are expected in place of those of `op`."""
    if plain:
        write(folder, name, plain[0], plain[1], first_constant, outputs, attributes, plain[2])
    arrays = [None if i is None else np.asarray(i) for i in inputs]
    names = ["" if a is None else f"in{i}" for i, a in enumerate(arrays)]
    kept = [i for i, a in enumerate(arrays) if i == 0 or (i < first_constant and a is not None)]
    wanted_outputs = outputs if isinstance(outputs, tuple) else {i for i in (0, 3) if i < outputs}
    out = [f"out{i}" if i in wanted_outputs else "" for i in range(max(wanted_outputs) + 1)]
    infos = [helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(arrays[i].dtype), arrays[i].shape) for i in kept]
    constants = [numpy_helper.from_array(a, n) for i, (a, n) in enumerate(zip(arrays, names)) if i not in kept and n]
    node = helper.make_node(op, names, out, domain=domain, **attributes)
    wanted = [o for o in out if o]
    results = [helper.make_tensor_value_info(o, TensorProto.UNDEFINED, None) for o in wanted]
    graph = helper.make_graph([node], name, infos, results, constants)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)])
    for o in model.graph.output:
        o.ClearField("type")
    results = results_of(model, wanted, {names[i]: arrays[i] for i in kept})
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    for info, result in zip(model.graph.output, results):
        info.CopyFrom(helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(result.dtype), result.shape))
    onnx.save(model, folder / "model.onnx")
    files = [("input", [arrays[i] for i in kept], [names[i] for i in kept])] + ([] if plain else [("output", results, wanted)])
    for kind, values, of in files:
        for i, (value, own) in enumerate(zip(values, of)):
            (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(value), own).SerializeToString())


def write_resize_of_constant(folder: Path, name: str, attributes: dict) -> None:
    """An input plus what Resize makes of a constant, which is computed when the model is imported."""
    x, scales, added = normal(1, 2, 3, 4), np.array([1, 1, 2, 1.5], np.float32), normal(1, 2, 6, 6)
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["larger"], **attributes), helper.make_node("Add", ["larger", "added"], ["y"])]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, added.shape) for n in ("added", "y")]
    constants = [numpy_helper.from_array(x, "x"), numpy_helper.from_array(scales, "scales")]
    graph = helper.make_graph(nodes, name, infos[:1], infos[1:], constants)
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])
    (folder / name).mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / name / "model.onnx")
    for file, value, own in (("input_0", added, "added"), ("output_0", results_of(model, ["y"], {"added": added})[0], "y")):
        (folder / name / f"{file}.pb").write_bytes(numpy_helper.from_array(value, own).SerializeToString())


def write_resize_to_another(folder: Path, name: str, attributes: dict) -> None:
    """An input resized to the extents of another; those of both are unknown when the model is imported."""
    x, like = normal(1, 2, 5, 4), normal(1, 2, 3, 9)
    nodes = [helper.make_node("Shape", ["like"], ["sizes"]),
             helper.make_node("Resize", ["x", "", "", "sizes"], ["resized"], **attributes), helper.make_node("Add", ["resized", "like"], ["y"])]
    of = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2, *dims])
          for n, dims in (("x", "hw"), ("like", "pq"), ("y", "pq"))]
    model = helper.make_model(helper.make_graph(nodes, name, of[:2], of[2:]), ir_version=9, opset_imports=[helper.make_opsetid("", 18)])
    (folder / name).mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / name / "model.onnx")
    for file, value, own in (("input_0", x, "x"), ("input_1", like, "like"),
                             ("output_0", results_of(model, ["y"], {"x": x, "like": like})[0], "y")):
        (folder / name / f"{file}.pb").write_bytes(numpy_helper.from_array(value, own).SerializeToString())


def write_between_quantizers(folder: Path, name: str, layers: list[tuple], x: np.ndarray, x_codes: type, float_ends: bool = True) -> None:
    """A chain of products of codes as quantizers write it: (operator, attributes, codes of weights, their scales, zero points, axis, bias,
    activation, type of the result's codes). Without `float_ends` the model's input and output are codes."""
    nodes, constants = [], {}

    def constant(own: str, value: np.ndarray) -> str:
        constants[own] = value
        return own

    def codes_of(number: int, value: str, dtype: type) -> list[str]:
        by = [constant(f"scale{number}", np.float32(0.031 + 0.01 * number)), constant(f"zero{number}", zero(3 * number, dtype))]
        nodes.append(helper.make_node("QuantizeLinear", [value, *by], [f"codes{number}"]))
        return [f"codes{number}", *by]

    if float_ends:
        held = codes_of(0, "x", x_codes)
    else:
        held = ["x", constant("scale0", np.float32(0.031)), constant("zero0", zero(0, x_codes))]
    for i, (op, attributes, w, scales, zeros, axis, bias, activation, codes_type) in enumerate(layers, 1):
        nodes.append(helper.make_node("DequantizeLinear", held, [f"x{i}"]))
        of_w = [constant(f"w{i}", w), constant(f"w_scale{i}", scales)] + ([] if zeros is None else [constant(f"w_zero{i}", zeros)])
        nodes.append(helper.make_node("DequantizeLinear", of_w, [f"numbers{i}"], axis=axis))
        inputs = [f"x{i}", f"numbers{i}"] + ([] if bias is None else [constant(f"bias{i}", bias)])
        nodes.append(helper.make_node(op, inputs, [f"sums{i}"], **attributes))
        made = f"sums{i}"
        if activation:
            nodes.append(helper.make_node(activation, [made], [f"made{i}"]))
            made = f"made{i}"
        held = codes_of(i, made, codes_type)
    y = held[0]
    if float_ends:
        y = "y"
        nodes.append(helper.make_node("DequantizeLinear", held, [y]))
    given = x if float_ends else (x * 20).astype(x_codes)
    infos = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(given.dtype), given.shape),
             helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None)]
    graph = helper.make_graph(nodes, name, infos[:1], infos[1:], [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    model = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)])
    model.graph.output[0].ClearField("type")
    result = results_of(model, [y], {"x": given})[0]
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(y, helper.np_dtype_to_tensor_dtype(result.dtype), result.shape))
    (folder / name).mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / name / "model.onnx")
    for file, value, own in (("input_0", given, "x"), ("output_0", result, y)):
        (folder / name / f"{file}.pb").write_bytes(numpy_helper.from_array(value, own).SerializeToString())


QUANTIZED = [
    ("qdq_matmul", [("MatMul", {}, codes(i8, 8, 6), scale(), None, 1, None, None, u8),
                    ("MatMul", {}, codes(i8, 6, 7), scale(7), zero(0, i8).repeat(7), 1, None, "Relu", u8)], normal(5, 8), u8, True),
    ("qdq_matmul_zero_points", [("MatMul", {}, codes(u8, 8, 6), scale(6), codes(u8, 6), -1, None, None, i8),
                                ("MatMul", {}, codes(u8, 6, 7), scale(), zero(121, u8), 1, None, "Tanh", u8)], normal(2, 5, 8), i8, True),
    ("qdq_gemm", [("Gemm", {"transB": 1}, codes(i8, 6, 8), scale(6), None, 0, normal(6), "Relu", u8),
                  ("Gemm", {"alpha": 0.5, "beta": 2.0}, codes(i8, 6, 7), scale(7), codes(i8, 7), 1, normal(7), None, i8)],
     normal(5, 8), u8, True),
    ("qdq_conv", [("Conv", {"pads": [1, 1, 1, 1]}, codes(i8, 4, 3, 3, 3), scale(4), None, 0, normal(4), "Relu", u8),
                  ("Conv", {"strides": [2, 2]}, codes(i8, 6, 4, 3, 3), scale(), None, 0, None, None, u8),
                  ("Conv", {"group": 6}, codes(u8, 6, 1, 2, 2), scale(6), codes(u8, 6), 0, None, "Sigmoid", u8)],
     normal(2, 3, 9, 8), u8, True),
    ("qdq_of_codes", [("Conv", {"group": 2, "pads": [1, 0, 1, 2]}, codes(i8, 4, 2, 3, 3), scale(), zero(5, i8), 0, None, None, i8)],
     normal(1, 4, 7, 7), i8, False),
]

for case in QUANTIZED:
    write_between_quantizers(Path(sys.argv[1]), *case)
for case in [*CASES, lstm()]:
    write(Path(sys.argv[1]), *case)
for number, how in enumerate(({"mode": "linear"}, {"mode": "nearest", "nearest_mode": "floor"}, {"mode": "cubic"},
                              {"mode": "linear", "coordinate_transformation_mode": "align_corners"}, {"mode": "linear", "antialias": 1})):
    write_resize_of_constant(Path(sys.argv[1]), f"resize_of_constant_{number}", how)
for number, how in enumerate(({"mode": "linear"}, {"mode": "nearest"}, {"mode": "cubic"}, {"mode": "nearest", "nearest_mode": "ceil"},
                              {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
                              {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"})):
    write_resize_to_another(Path(sys.argv[1]), f"resize_to_another_{number}", how)
