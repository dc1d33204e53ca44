"""Takes silero's weights out of its ONNX file, under the names of the kernel's arguments: export.py silero_vad_16k_op15.onnx MODEL.safetensors.
They stay in the order in which they lie there. (The wheel's own silero_vad_16k.safetensors has the weights of another training.)"""
import sys

import onnx
import safetensors.numpy
from onnx import numpy_helper

# Arguments of generator.cpp: how the tensor's name ends in the file, and its shape.
TENSORS = {"stft_conv_weight": ("stft.forward_basis_buffer", (258, 1, 256)),
           "final_conv_weight": ("decoder.decoder.2.weight", (1, 128, 1)), "final_conv_bias": ("decoder.decoder.2.bias", (1,))}
for layer, (outputs, inputs) in enumerate([(128, 129), (64, 128), (64, 64), (128, 64)]):
    TENSORS[f"conv{layer + 1}_weight"] = (f"encoder.{layer}.reparam_conv.weight", (outputs, inputs, 3))
    TENSORS[f"conv{layer + 1}_bias"] = (f"encoder.{layer}.reparam_conv.bias", (outputs,))
for part, shape in {"weight_ih": (512, 128), "weight_hh": (512, 128), "bias_ih": (512,), "bias_hh": (512,)}.items():
    TENSORS[f"lstm_cell_{part}"] = (f"decoder.rnn.{part}", shape)


def constants(graph):
    """By name, those of the graph and of the graphs inside of its nodes."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from constants(attribute.g)
            elif attribute.type == onnx.AttributeProto.TENSOR:
                yield node.output[0], attribute.t


held, made = dict(constants(onnx.load(sys.argv[1]).graph)), {}
for argument, (ending, shape) in TENSORS.items():
    found = [numpy_helper.to_array(tensor) for name, tensor in held.items() if name.endswith(ending)]
    if [array.shape for array in found] != [shape]:
        sys.exit(f"error[vad.export]: {sys.argv[1]}: expected one tensor '...{ending}' of shape {shape}, got {[a.shape for a in found]}")
    made[argument] = found[0]
safetensors.numpy.save_file(made, sys.argv[2])
