"""Exports every algorithm of the library to ONNX and runs the models: each agrees within its bounds, or is listed as refused.

    export.py <tessera-generator> <onnx_export> <folder> <refused.txt> [--only <part of a name>] [--runtime]

A result agrees where integers are equal, and where each float is as near to the exact one as `verify` and the certificate ask: within the
running error bound of its element, or 8 times as far off as the algorithm in its own types plus 4 units in the last place of the largest
element. refused.txt lists what is refused, "name: reason", "random" for programs made at random; what is exported must not be in it, so it
only shrinks. Models run in onnx's reference evaluator; with --runtime in onnxruntime.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}


# Other policies and options than the plain ones, as commands take them.
VARIANTS = [
    *(f"{name} --numerics {policy}" for name in ("linear", "softmax", "layernorm", "conv2d_nhwc", "attention_causal")
      for policy in ("bf16", "f16", "f64")), "linear_gelu --numerics bf16",
    *(f"linear --numerics {policy}" for policy in ("inference", "nvfp4", "tf32", "training")), "encoder_layer --numerics inference",
    "gemm --option activation=gelu,bias=yes,scale=channel,residual=yes", "gemm --option transpose_w=yes",
    "conv1d --option stride=2,padding=1,dilation=2",
    "conv2d_nhwc --option stride=2,padding=1", "conv2d_nchw --option stride=3,padding=2,dilation=2",
    "grouped_conv2d_nhwc --shape G=3 --option padding=1", "depthwise_conv2d_nhwc --shape C=4 --option stride=2,padding=1",
    "max_pool2d_nhwc --option size=3,stride=2,padding=1", "average_pool2d_nhwc --option size=3,padding=1,dilation=2",
    "transposed_conv2d_nhwc --option stride=2,padding=1,end=1", "attention_grouped --option causal=yes,window=3,mask=yes",
    "rotary --option interleaved=yes,tables=yes", "top_k --option k=3", "sort --option length=9", "slice --option step=3",
    "fft --option points=12", "rfft --option points=10", "irfft --option points=16", "dropout --numerics bf16", "adamw --numerics training",
]


def tensor(path):
    proto = onnx.TensorProto()
    proto.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(proto)


def arrays(folder, kind):
    all_of = []
    while (path := folder / f"{kind}_{len(all_of)}.pb").exists():
        all_of.append(tensor(path))
    return all_of


def wrong(got, exact, own, bound):
    """What is wrong with a result, or nothing."""
    if list(got.shape) != list(own.shape):
        return f"shape {got.shape}, expected {own.shape}"
    if got.size == 0:
        return None
    if not np.issubdtype(exact.dtype, np.floating) or own.dtype.kind in "iub":
        same = np.array_equal(got.astype(np.int64), own.astype(np.int64))
        return None if same else f"{int((got != own).sum())} integers of {got.size} differ"
    values, numbers = got.astype(np.float64), own.astype(np.float64)
    finite = np.isfinite(exact) & np.isfinite(numbers)
    if not np.array_equal(np.isfinite(values), finite) or not np.array_equal(np.isnan(values), np.isnan(numbers)):
        return "other elements are finite"
    if not finite.any():
        return None
    truth, far = exact[finite], np.abs(values - exact)[finite]
    allowed = 8 * np.abs(numbers - exact)[finite].max() + 4 * EPSILON.get(str(own.dtype), 0.25) * np.abs(truth).max()
    if bound is not None:
        allowed = np.maximum(allowed, np.where(np.isfinite(bound[finite]), bound[finite], 0))
    if (far <= allowed).all():
        return None
    worst = int(np.argmax(far - allowed))
    return f"element {worst} is off by {far[worst]:.3g}, may be {np.broadcast_to(allowed, far.shape)[worst]:.3g}"


def with_plain_ends(model, given):
    """The model with inputs and outputs that NumPy has, which nodes convert: bf16 as f32, int4 as i32."""
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    call = plain.graph.node[0]
    before, after = [], []

    def wide(info):
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if kind in (np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_):
            return None
        return onnx.TensorProto.INT32 if "int" in kind.name else onnx.TensorProto.FLOAT

    for i, info in enumerate(plain.graph.input):
        if (to := wide(info)) is not None:
            call.input[i] = info.name + "_narrow"
            before.append(onnx.helper.make_node("Cast", [info.name], [call.input[i]], to=info.type.tensor_type.elem_type))
            info.type.tensor_type.elem_type = to
            given[info.name] = given[info.name].astype(onnx.helper.tensor_dtype_to_np_dtype(to))
    for i, info in enumerate(plain.graph.output):
        if (to := wide(info)) is not None:
            call.output[i] = info.name + "_narrow"
            after.append(onnx.helper.make_node("Cast", [call.output[i]], [info.name], to=to))
            info.type.tensor_type.elem_type = to
    nodes = [*before, call, *after]
    new = onnx.GraphProto()
    new.CopyFrom(plain.graph)
    del new.node[:]
    new.node.extend(nodes)
    plain.graph.CopyFrom(new)
    return plain


def results(model, given, runtime):
    if runtime:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        model = with_plain_ends(model, given)
        return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, given)
    return ReferenceEvaluator(model).run(None, given)


def judge(folder, runtime):
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    for shape in sorted(folder.glob("shape_*")):
        inputs = arrays(shape, "input")
        for i, info in enumerate(model.graph.input):
            wanted = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            inputs[i] = inputs[i].astype(wanted)
        given = {info.name: a for info, a in zip(model.graph.input, inputs, strict=True)}
        made = results(model, given, runtime)
        exact, own = arrays(shape, "exact"), arrays(shape, "own")
        for i, got in enumerate(made):
            path = shape / f"bound_{i}.pb"
            if why := wrong(np.asarray(got), exact[i], own[i], tensor(path) if path.exists() else None):
                return f"{shape.name}, {model.graph.output[i].name}: {why}"
    return None


def main():
    warnings.simplefilter("ignore")  # of NumPy, of what Where does not choose
    generator, exporter, folder, listed = sys.argv[1:5]
    runtime = "--runtime" in sys.argv
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "algorithms").mkdir(parents=True)
    listing = json.loads(subprocess.run([generator, "list", "--json"], check=True, capture_output=True).stdout)
    wanted = [([a["name"]], a["name"]) for a in listing["algorithms"]]
    wanted += [(v.split(), v.replace(" --", ".").replace(" ", "_")) for v in VARIANTS]
    files = []
    for words, name in wanted:
        if only in name:
            text = subprocess.run([generator, "show", *words, "--json"], check=True, capture_output=True).stdout
            files.append(folder / "algorithms" / f"{name}.json")
            files[-1].write_bytes(text)
    if only in "random":
        subprocess.run([exporter, str(folder / "algorithms"), "--random", "60"], check=True)
        files += sorted((folder / "algorithms").glob("random_*.json"))
    expected = {}
    for line in pathlib.Path(listed).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, reason = line.split(": ", 1)
            expected[name] = reason
    made = subprocess.run([exporter, str(folder), *map(str, files)], capture_output=True, text=True)
    failures = made.stdout.splitlines()
    if made.returncode not in (0, 1):
        failures.append(f"onnx_export ended with {made.returncode}: {made.stderr}")
    agree = 0
    for file in files:
        name = file.stem
        refused = folder / name / "refused.txt"
        if refused.exists():
            reason = refused.read_text(encoding="utf-8")
            listed_as = "random" if name.startswith("random_") else name
            if listed_as not in expected or expected[listed_as] not in reason:
                failures.append(f"{name}: refused, and not listed so: {reason}")
            continue
        if name in expected:
            failures.append(f"{name}: is exported, and listed as refused")
        try:
            why = judge(folder / name, runtime)
        except Exception as error:  # whatever a runtime throws is its verdict
            why = f"{type(error).__name__}: {str(error)[:400]}"
        if why:
            failures.append(f"{name}: {why}")
        else:
            agree += 1
    print("\n".join(failures))
    print(f"{agree} of {len(files)} agree, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
