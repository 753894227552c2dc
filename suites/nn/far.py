"""Convolutions at sizes that no common model has: a stride, a dilation or a padding at the end of i32, a row, filters
or groups beyond a vector.

Each change keeps an instance valid by the formulas of NeuralNetwork.proto, ConvolutionLayerParams and
Convolution3DLayerParams: a forward convolution has one position under any stride, a kernel of one cell any dilation,
and few positions under a stride as long as its padding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.core.instance import Instance
from harness.declare import Draw
from harness.declare.schema import OpSchema

FAR = (300, 2**31 - 1)
_WIDE = 257
_AXES3 = ("Depth", "Height", "Width")


class _Layer:
    """A convolution layer: how it spells a number of an axis, and its weights."""

    def __init__(self, s: OpSchema, inst: Instance) -> None:
        self.inst, self.three, self.turned = inst, "3d" in s.op, s.op.endswith(".isDeconvolution")
        self.n = 3 if self.three else 2
        self.x = inst.tensor("x")
        self.weights = inst.tensor("weights" if "weights" in inst.args else "weight")
        self.bias = inst.tensor("bias") if "bias" in inst.args else None

    def set(self, name: str, axis: int, value: int, others: int) -> None:
        """One number of a list of ``others`` where none is given: an attribute an axis of three of them."""
        attrs = self.inst.attrs
        if self.three:
            attrs[f"{name}{_AXES3[axis]}"] = value
            return
        name = {"kernel": "kernelSize", "dilation": "dilationFactor"}.get(name, name)
        given = list(attrs.get(name) or (others,) * self.n)
        attrs[name] = [*given[:axis], value, *given[axis + 1 :]]

    @property
    def groups(self) -> int:
        return int(self.inst.attrs.get("nGroups") or 1)

    @property
    def same(self) -> bool:
        attrs = self.inst.attrs
        return "same" in (attrs.get("ConvolutionPaddingType"), str(attrs.get("paddingType")).lower())

    @property
    def sized(self) -> bool:
        """Does an output shape count?"""
        return self.turned and bool(self.inst.attrs.get("outputShape"))


def _stride(layer: _Layer, d: Draw) -> None:
    axes = list(range(layer.n))
    if layer.turned:
        free = not layer.sized and not layer.same
        axes = [i for i in axes if free and layer.x.shape[i - layer.n] == 1]
    if axes:
        layer.set("stride", d.pick(axes), d.pick(FAR), 1)


def _dilation(layer: _Layer, d: Draw) -> None:
    """Along an axis of one cell."""
    ones = [i for i, n in enumerate(layer.weights.shape[-layer.n :]) if n == 1]
    if ones and (layer.three or not layer.turned):
        layer.set("dilation", d.pick(ones), d.pick(FAR), 1)


def _padding(layer: _Layer, d: Draw) -> None:
    """Before or behind an axis, in steps as far: the window behind the padding is one of few."""
    attrs = layer.inst.attrs
    if layer.three or layer.turned or attrs.get("ConvolutionPaddingType") != "valid":
        return
    axis, pads = d.int(0, 1), list(attrs.get("valid.paddingAmounts") or (0, 0, 0, 0))  # top, bottom, left, right
    pads[2 * axis + d.int(0, 1)] = FAR[-1]
    attrs["valid.paddingAmounts"] = pads
    layer.set("stride", axis, FAR[-1] - d.int(0, 1), 1)


def _with(shape: tuple[int, ...], at: int, n: int) -> tuple[int, ...]:
    at %= len(shape)
    return (*shape[:at], n, *shape[at + 1 :])


def _row(layer: _Layer, d: Draw) -> None:
    if not layer.sized and not layer.same:
        axis, k = d.int(0, layer.n - 1), d.pick((20, 130, 256))
        layer.x.shape = _with(layer.x.shape, axis - layer.n, _WIDE)
        if d.bool() and layer.weights.quant is None:
            layer.weights.shape = _with(layer.weights.shape, axis - layer.n, k)
            layer.set("dilation", axis, 1, 1)
            layer.set("kernel", axis, k, 3)


def _filters(layer: _Layer, d: Draw) -> None:
    """More filters than a vector has places; quantised ones keep their number of scales."""
    w = layer.weights
    if layer.groups > 1 or w.quant is not None:
        return
    w.shape = (w.shape[0], _WIDE, *w.shape[2:]) if layer.turned else (_WIDE, *w.shape[1:])
    layer.inst.attrs["outputChannels"] = _WIDE
    if layer.bias is not None:
        layer.bias.shape = (_WIDE,)


def _groups(layer: _Layer, d: Draw) -> None:
    """Each channel its own group."""
    w, n = layer.weights, d.int(9, 17)
    if w.quant is not None:
        return
    at = len(layer.x.shape) - layer.n - 1
    layer.x.shape = (*layer.x.shape[:at], n, *layer.x.shape[at + 1 :])
    w.shape = (n, 1, *w.shape[2:])
    attrs = {"inputChannels": n} if layer.three else {"kernelChannels": n if layer.turned else 1}
    layer.inst.attrs.update(attrs, nGroups=n, outputChannels=n)
    if layer.bias is not None:
        layer.bias.shape = (n,)


_Way = Callable[[Any, Draw], None]
_WAYS: tuple[_Way, ...] = (_stride, _stride, _dilation, _dilation, _padding, _row, _filters, _groups)


def push(s: OpSchema, inst: Instance, d: Draw) -> None:
    """Change one number of a convolution, if it is one."""
    if s.extra["layer"] in ("convolution", "convolution3d"):
        layer = _Layer(s, inst)
        if layer.weights.values is None:
            d.pick(_WAYS)(layer, d)
