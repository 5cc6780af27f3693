"""Fewer bits: rounding weights, packing them, and the methods that round where it hurts least."""

from costmodel.lab.quantization.activation_aware import ActivationAware, awq
from costmodel.lab.quantization.compensated import gptq, output_error
from costmodel.lab.quantization.copies import changed_copy, copy_bytes, layer_inputs, quantized_copy
from costmodel.lab.quantization.floats import mxfp4, nvfp4, round_to_float, scale_and_minimum
from costmodel.lab.quantization.outliers import int8_multiply, outlier_columns
from costmodel.lab.quantization.packing import pack, unpack
from costmodel.lab.quantization.rounding import dequantize, quantization_error, quantize, relative_error
from costmodel.lab.quantization.schemes import Quantized, Scheme

__all__ = [
    "ActivationAware",
    "Quantized",
    "Scheme",
    "awq",
    "changed_copy",
    "copy_bytes",
    "dequantize",
    "gptq",
    "int8_multiply",
    "layer_inputs",
    "mxfp4",
    "nvfp4",
    "outlier_columns",
    "output_error",
    "pack",
    "quantization_error",
    "quantize",
    "quantized_copy",
    "relative_error",
    "round_to_float",
    "scale_and_minimum",
    "unpack",
]
