"""A layer normalisation in PyTorch: ``pytest examples/kernels/layer_norm_torch.py`` (needs the package torch).

The operands are tensors on the device that DEVICE names, such as ``DEVICE=torch:cuda:0``.
"""

import os

import torch

from opconform import conforms


@conforms("onnx/LayerNormalization-17", dtypes=("f32", "f16", "bf16"), device=os.environ.get("DEVICE", "torch"))
def test_layer_norm(x, scale, bias, axis, epsilon, stash_type):
    """Y, Mean and InvStdDev; the last two have the type that ``stash_type`` names."""
    stage = getattr(torch, stash_type.name)  # the attribute is a NumPy dtype
    dims = list(range(axis % x.dim(), x.dim()))
    wide = x.to(stage)
    mean = wide.mean(dims, keepdim=True)
    inverse = torch.rsqrt((wide - mean).square().mean(dims, keepdim=True) + epsilon)
    y = ((wide - mean) * inverse).to(x.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse
