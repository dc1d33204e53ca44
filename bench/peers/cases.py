"""A row as work to do: its inputs, and the calls of each side that do it. A call of a peer gives its result, laid out as ours."""
import ctypes
import ctypes.util
import dataclasses
import glob
import os

import numpy
import onnxruntime
import scipy_openblas64
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

from ours import EPSILON
from rows import windows


@dataclasses.dataclass
class Case:
    ours: dict           # ways, calls by their names, which write `result`
    result: torch.Tensor
    peers: dict          # of each peer its ways: a call that gives its result, as a tensor or as what `seen` makes one
    expected: torch.Tensor
    tolerance: float     # of the largest element
    why_not: dict = dataclasses.field(default_factory=dict)  # peers that cannot do it


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def integers(*values):
    return [ctypes.c_int64(value) for value in values]


ROW_MAJOR, NOT_TRANSPOSED = 101, 111  # of cblas.h


class OpenBlas:
    def __init__(self):
        self.library = ctypes.CDLL(glob.glob(os.path.join(scipy_openblas64.get_lib_dir(), "*.so*"))[0])
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_config64_"):
            getattr(self.library, name).restype = ctypes.c_char_p
        self.core = self.library.scipy_openblas_get_corename64_().decode()
        self.version = self.library.scipy_openblas_get_config64_().decode().split()[1]

    def sgemm(self, x, w, y, threads):
        (m, k), n = x.shape, w.shape[1]
        args = [*integers(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, m, n, k), ctypes.c_float(1), pointer(x), *integers(k), pointer(w), *integers(n),
                ctypes.c_float(0), pointer(y), *integers(n)]
        self.library.scipy_openblas_set_num_threads64_(threads)
        return lambda: self.library.scipy_cblas_sgemm64_(*args)

    def sgemv(self, a, x, y, threads):
        m, k = a.shape
        args = [*integers(ROW_MAJOR, NOT_TRANSPOSED, m, k), ctypes.c_float(1), pointer(a), *integers(k), pointer(x), *integers(1),
                ctypes.c_float(0), pointer(y), *integers(1)]
        self.library.scipy_openblas_set_num_threads64_(threads)
        return lambda: self.library.scipy_cblas_sgemv64_(*args)


class Fftw:
    """Debian's, with a plan that it has measured."""

    def __init__(self):
        self.library = ctypes.CDLL(ctypes.util.find_library("fftw3f"))
        self.library.fftwf_plan_many_dft.restype = ctypes.c_void_p
        self.version = (ctypes.c_char * 64).in_dll(self.library, "fftwf_version").value.decode()

    def transform(self, x, y, points, batch):
        shape, none, forward, measure = (ctypes.c_int * 1)(points), None, -1, 0
        saved = x.clone()
        plan = ctypes.c_void_p(self.library.fftwf_plan_many_dft(
            1, shape, batch, pointer(x), none, 1, points, pointer(y), none, 1, points, forward, measure))
        x.copy_(saved)
        return lambda: self.library.fftwf_execute(plan)


ONNX = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int32": TensorProto.INT32}


def runtime_call(threads, op, inputs, constants, result, opset=23, domain="", level="ORT_ENABLE_ALL", **attributes):
    """A model of one operator, whose inputs and result stay where they are; constants are part of it."""
    kind = {t: ONNX[str(t.dtype).removeprefix("torch.")] for t in (*inputs.values(), *constants.values(), result)}
    node = helper.make_node(op, [*inputs, *constants], ["result"], domain=domain, **attributes)
    values = [helper.make_tensor_value_info(name, kind[t], list(t.shape)) for name, t in inputs.items()]
    graph = helper.make_graph([node], "row", values, [helper.make_tensor_value_info("result", kind[result], list(result.shape))],
                              [numpy_helper.from_array(t.numpy(), name) for name, t in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)], ir_version=11)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, t in inputs.items():
        binding.bind_input(name, "cpu", 0, t.numpy().dtype, list(t.shape), t.data_ptr())
    binding.bind_output("result", "cpu", 0, result.numpy().dtype, list(result.shape), result.data_ptr())

    def call(kept=(inputs, result, binding)):
        session.run_with_iobinding(binding)
        return result
    return call


def with_result(call, result):
    def both():
        call()
        return result
    return both


class Cases:
    """Makes the case of a row."""

    def __init__(self, kernels, compiled):
        self.kernels, self.compiled, self.openblas, self.fftw = kernels, compiled, OpenBlas(), Fftw()

    def case(self, row):
        torch.set_num_threads(row.threads)
        torch.manual_seed(1)
        return getattr(self, row.kind)(row, **row.extents)

    def compile(self, row, function, *arguments):
        """A way by PyTorch's compiler; none where it is not wanted, or for several threads, whose number it would take into the code."""
        if not self.compiled or row.threads > 1:
            return {}
        torch._dynamo.reset()
        made = torch.compile(function, dynamic=False)
        return {"compiled": lambda: made(*arguments)}

    def product(self, row, M, N, K):
        if row.dtype == "u8s8":
            return self.product_u8s8(row, M, N, K)
        if row.dtype == "int4":
            return self.product_int4(row, M, N, K)
        dtype = torch.bfloat16 if row.dtype == "bf16" else torch.float32
        x, w = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype)
        y, z = torch.empty(M, N, dtype=dtype), torch.empty(M, N, dtype=dtype)
        ours = self.kernels.weighted(row, "matmul", [x, w, y], {"N": N, "K": K})
        pytorch = {"mm": lambda: torch.mm(x, w, out=z)}
        rows = w.t().contiguous()
        if row.prepared:
            reordered = torch.ops.mkldnn._reorder_linear_weight(rows, M)
            pytorch["reordered"] = lambda: torch.ops.mkldnn._linear_pointwise(x, reordered, None, "none", [], "")
            pytorch["linear"] = lambda: F.linear(x, rows)
        if M == 1 and row.prepared:
            ours["gemv"] = self.kernels.call(row, "gemv", [rows, x[0], y[0]], {"M": N, "K": K})
        peers, why_not = {"PyTorch": pytorch}, {}
        if row.dtype == "f32":
            peers["OpenBLAS"] = {"sgemm": with_result(self.openblas.sgemm(x, w, z, row.threads), z)}
            inputs, constants = ({"x": x}, {"w": w}) if row.prepared else ({"x": x, "w": w}, {})
            peers["onnxruntime"] = {"MatMul": runtime_call(row.threads, "MatMul", inputs, constants, torch.empty(M, N))}
        else:
            why_not = {"onnxruntime": "has no bf16 product for CPUs", "OpenBLAS": "its bf16 products are not in the wheel"}
        return Case(ours, y, peers, x.double() @ w.double(), 2e-2 if row.dtype == "bf16" else 1e-4, why_not)

    def product_u8s8(self, row, M, N, K):
        x, w = torch.randint(0, 255, (M, K), dtype=torch.uint8), torch.randint(-127, 127, (K, N), dtype=torch.int8)
        y, scale, zero = torch.empty(M, N, dtype=torch.int32), torch.ones(N), torch.zeros(N, dtype=torch.int32)
        ours = self.kernels.weighted(row, "matmul_u8s8", [x, w, y], {"N": N, "K": K})
        reordered = torch.ops.onednn.qlinear_prepack(w.t().contiguous(), [M, K])
        result = torch.empty(M, N, dtype=torch.int32)

        def qlinear():
            return torch.ops.onednn.qlinear_pointwise(x, 1.0, 0, reordered, scale, zero, None, 1.0, 0, torch.float32, "none", [], "")
        peers = {"PyTorch": {"qlinear": qlinear},
                 "onnxruntime": {"MatMulInteger": runtime_call(row.threads, "MatMulInteger", {"x": x}, {"w": w}, result)}}
        return Case(ours, y, peers, x.double() @ w.double(), 0, {"OpenBLAS": "has no products of integers"})

    def product_int4(self, row, M, N, K, group=32):
        """Weights of 4 bits, a scale for each 32 along K. Ours rounds rows to 8 bits on the way, or does not; PyTorch does not."""
        x, codes = torch.randn(M, K), torch.randint(0, 16, (N, K), dtype=torch.int32)
        scale, y = torch.rand(N, K // group) / 8 + 0.01, torch.empty(M, N)
        weights = ((codes - 8).view(N, -1, group) * scale[..., None].double()).view(N, K)
        pairs = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
        ours = {}
        for algorithm in ("matmul_dynamic_qint4", "matmul_qint4"):
            for schedule in (None, *self.kernels.prepacked(algorithm, "f32")):
                ours[schedule or algorithm] = self.kernels.call(row, algorithm, [x, (pairs, "u4", [N, K]), scale, y], {"N": N, "K": K},
                                                                options=(("group", group),), schedule=schedule, packed=("codes", "scale"))
        packed, pytorch = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1), {}
        for dtype in (torch.float32, torch.bfloat16):
            rows, scales = x.to(dtype), torch.stack([scale.t(), torch.zeros(K // group, N)], -1).to(dtype).contiguous()
            pytorch[str(dtype)] = (lambda r=rows, s=scales: torch.ops.aten._weight_int4pack_mm_for_cpu(r, packed, group, s))
        return Case(ours, y, {"PyTorch": pytorch}, x.double() @ weights.t(), 3e-2,
                    {"OpenBLAS": "has no weights of 4 bits", "onnxruntime": "its MatMulNBits is not compared yet"})

    def gemv(self, row, M, K):
        dtype = torch.bfloat16 if row.dtype == "bf16" else torch.float32
        a, x, y, z = torch.randn(M, K).to(dtype), torch.randn(K).to(dtype), torch.empty(M, dtype=dtype), torch.empty(M, dtype=dtype)
        ours = {"gemv": self.kernels.call(row, "gemv", [a, x, y], {"M": M, "K": K})}
        line = x[None]
        reordered = torch.ops.mkldnn._reorder_linear_weight(a, 1)
        peers = {"PyTorch": {"mv": lambda: torch.mv(a, x, out=z), "linear": lambda: F.linear(line, a)[0],
                             "reordered": lambda: torch.ops.mkldnn._linear_pointwise(line, reordered, None, "none", [], "")[0]}}
        why_not = {}
        if row.dtype == "f32":
            peers["OpenBLAS"] = {"sgemv": with_result(self.openblas.sgemv(a, x, z, row.threads), z)}
            result = torch.empty(1, M)
            product = runtime_call(row.threads, "MatMul", {"x": line}, {"w": a.t().contiguous()}, result)
            peers["onnxruntime"] = {"MatMul": with_result(product, result[0])}
        else:
            why_not = {"onnxruntime": "has no bf16 product for CPUs", "OpenBLAS": "its bf16 products are not in the wheel"}
        return Case(ours, y, peers, a.double() @ x.double(), 2e-2 if row.dtype == "bf16" else 1e-4, why_not)

    def attend(self, row, H, S, D, causal):
        dtype = torch.bfloat16 if row.dtype == "bf16" else torch.float32
        q, k, v = (torch.randn(1, H, S, D).to(dtype) for _ in range(3))
        y = torch.empty(H, S, D, dtype=dtype)
        ours = {"default": self.kernels.call(row, "attention_causal" if causal else "attention", [q[0], k[0], v[0], y], {"D": D, "E": D})}
        peers, why_not = {"PyTorch": {"sdpa": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)[0]}}, {}
        if row.dtype == "f32":
            sides = {n: t.transpose(1, 2).reshape(1, S, H * D).contiguous() for n, t in zip("qkv", (q, k, v))}
            result = torch.empty(1, S, H * D)
            of_heads = result.view(S, H, D).transpose(0, 1)
            multi = runtime_call(row.threads, "MultiHeadAttention", sides, {}, result, domain="com.microsoft", num_heads=H,
                                 unidirectional=int(causal))
            single = runtime_call(row.threads, "Attention", {"q": q, "k": k, "v": v}, {}, torch.empty(1, H, S, D), is_causal=int(causal))
            peers["onnxruntime"] = {"MultiHeadAttention": with_result(multi, of_heads), "Attention": single}
        else:
            why_not = {"onnxruntime": "has no bf16 attention for CPUs"}
        expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)[0]
        return Case(ours, y, peers, expected, 2e-2 if row.dtype == "bf16" else 1e-4, why_not)

    def attention(self, row, H, S, D):
        return self.attend(row, H, S, D, False)

    def causal(self, row, H, S, D):
        return self.attend(row, H, S, D, True)

    def decode(self, row, H, G, T, D):
        dtype = torch.bfloat16 if row.dtype == "bf16" else torch.float32
        q, k, v = (torch.randn(1, H, n, D).to(dtype) for n in (G, T, T))
        y, alone = torch.empty(H, G, D, dtype=dtype), q.reshape(1, H * G, 1, D)
        ours = {"default": self.kernels.call(row, "attention_decode", [q[0], k[0], v[0], y], {"D": D, "E": D})}
        sdpa = F.scaled_dot_product_attention
        ways = {"sdpa, a group as rows": lambda: sdpa(q, k, v)[0],
                "sdpa, enable_gqa": lambda: sdpa(alone, k, v, enable_gqa=True).reshape(H, G, D)}
        why_not = {"onnxruntime": "its GroupQueryAttention appends to the cache too"}
        expected = sdpa(q.double(), k.double(), v.double())[0]
        return Case(ours, y, {"PyTorch": ways}, expected, 2e-2 if row.dtype == "bf16" else 1e-4, why_not)

    def softmax(self, row, M, N):
        x, y, z = torch.randn(M, N), torch.empty(M, N), torch.empty(M, N)
        peers = {"PyTorch": {"softmax": lambda: torch.softmax(x, -1), "softmax.out": lambda: torch.softmax(x, -1, out=z),
                             **self.compile(row, lambda t: torch.softmax(t, -1), x)},
                 "onnxruntime": {"Softmax": runtime_call(row.threads, "Softmax", {"x": x}, {}, torch.empty(M, N), axis=-1)}}
        return Case({"default": self.kernels.call(row, "softmax", [x, y], {"N": N})}, y, peers, torch.softmax(x.double(), -1), 1e-5)

    def layernorm(self, row, M, N):
        x, g, b, y, z = torch.randn(M, N), torch.randn(N), torch.randn(N), torch.empty(M, N), torch.empty(M, N)
        mean, rstd = torch.empty(M, 1), torch.empty(M, 1)
        out = {"out0": z, "out1": mean, "out2": rstd}
        runtime = runtime_call(row.threads, "LayerNormalization", {"x": x}, {"g": g, "b": b}, torch.empty(M, N), epsilon=1e-5)
        peers = {"PyTorch": {"layer_norm": lambda: F.layer_norm(x, [N], g, b),
                             "layer_norm.out": lambda: torch.ops.aten.native_layer_norm.out(x, [N], g, b, 1e-5, **out)[0],
                             **self.compile(row, lambda t: F.layer_norm(t, [N], g, b), x)},
                 "onnxruntime": {"LayerNormalization": runtime}}
        ours = {"default": self.kernels.call(row, "layernorm", [x, g, b, y], {"N": N}, [EPSILON])}
        return Case(ours, y, peers, F.layer_norm(x.double(), [N], g.double(), b.double()), 1e-5)

    def rmsnorm(self, row, M, N):
        x, g, y = torch.randn(M, N), torch.randn(N), torch.empty(M, N)
        runtime = {op: runtime_call(row.threads, op, {"x": x}, {"g": g}, torch.empty(M, N), opset=opset, epsilon=1e-6)
                   for op, opset in (("RMSNormalization", 23), ("SimplifiedLayerNormalization", 17))}
        peers = {"PyTorch": {"rms_norm": lambda: F.rms_norm(x, [N], g, 1e-6), **self.compile(row, lambda t: F.rms_norm(t, [N], g, 1e-6), x)},
                 "onnxruntime": runtime}
        ours = {"default": self.kernels.call(row, "rmsnorm", [x, g, y], {"N": N})}
        return Case(ours, y, peers, F.rms_norm(x.double(), [N], g.double(), 1e-6), 1e-5)

    def conv(self, row, batch, HW, C, O, R, stride, padding):
        p = windows(row.extents)
        x, w, y = torch.randn(batch, HW, HW, C), torch.randn(R, R, C, O), torch.empty(batch, p, p, O)
        fixed, options = {"C": C, "O": O, "R": R, "S": R}, (("stride", stride), ("padding", padding))
        ours = self.kernels.weighted(row, "conv2d_nhwc", [x, w, y], fixed, options, ("prepacked", "prepacked_small"))
        return self.convolution(row, ours, x.permute(0, 3, 1, 2).contiguous(), w.permute(3, 2, 0, 1).contiguous(), stride, padding, 1, y)

    def depthwise(self, row, batch, HW, C, R, stride, padding):
        p = windows(row.extents)
        x, w, y = torch.randn(batch, HW, HW, C), torch.randn(R, R, C), torch.empty(batch, p, p, C)
        fixed, options = {"C": C, "R": R, "S": R}, (("stride", stride), ("padding", padding))
        ours = {"default": self.kernels.call(row, "depthwise_conv2d_nhwc", [x, w, y], fixed, options=options)}
        nchw, oihw = x.permute(0, 3, 1, 2).contiguous(), w.permute(2, 0, 1).unsqueeze(1).contiguous()
        return self.convolution(row, ours, nchw, oihw, stride, padding, C, y)

    def convolution(self, row, ours, nchw, oihw, stride, padding, groups, y):
        last, last_w = nchw.to(memory_format=torch.channels_last), oihw.to(memory_format=torch.channels_last)
        two = [padding, padding], [stride, stride], [1, 1]
        reordered = torch.ops.mkldnn._reorder_convolution_weight(oihw, *two, groups, list(nchw.shape))

        def seen(t):
            return t.permute(0, 2, 3, 1)

        def onednn(t):
            return seen(torch.ops.mkldnn._convolution_pointwise(t, reordered, None, *two, groups, "none", [], ""))
        pytorch = {"NCHW": lambda: seen(F.conv2d(nchw, oihw, None, stride, padding, 1, groups)),
                   "channels last": lambda: seen(F.conv2d(last, last_w, None, stride, padding, 1, groups)),
                   "reordered": lambda: onednn(nchw), "reordered, last": lambda: onednn(last)}
        result = torch.empty(y.permute(0, 3, 1, 2).shape)

        def runtime_at(level):
            call = runtime_call(row.threads, "Conv", {"x": nchw}, {"w": oihw}, result, level=level, strides=[stride] * 2, pads=[padding] * 4,
                                group=groups)
            return with_result(call, seen(result))
        runtime = {"NCHWc": runtime_at("ORT_ENABLE_ALL"), "NCHW": runtime_at("ORT_ENABLE_EXTENDED")}
        expected = seen(F.conv2d(nchw.double(), oihw.double(), None, stride, padding, 1, groups))
        return Case(ours, y, {"PyTorch": pytorch, "onnxruntime": runtime}, expected, 1e-4)

    def fft(self, row, points, batch):
        x, y, z = torch.randn(batch, 2 * points), torch.empty(batch, 2 * points), torch.empty(batch, 2 * points)
        complex_x, complex_z = torch.view_as_complex(x.view(batch, points, 2)), torch.view_as_complex(z.view(batch, points, 2))
        ours = {"default": self.kernels.call(row, "fft", [x, y], {}, options=(("points", points),))}
        array, out = complex_x.numpy(), complex_z.numpy()

        peers = {"FFTW": {"measured plan": with_result(self.fftw.transform(x, z, points, batch), z)},
                 "PyTorch": {"fft": lambda: torch.view_as_real(torch.fft.fft(complex_x)).view(batch, 2 * points)},
                 "NumPy": {"pocketfft": with_result(lambda: numpy.fft.fft(array, out=out), z)}}
        expected = torch.view_as_real(torch.fft.fft(complex_x.to(torch.complex128))).reshape(batch, 2 * points)
        return Case(ours, y, peers, expected, 1e-5, {"onnxruntime": "its DFT takes 40 times FFTW's time, and is off by 5e-4 at 1500 points"})
