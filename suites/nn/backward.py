"""Layers forwards and backwards, for training: what a layer gives, and its gradients for the input and the weights.

Everything is f64.  A layer is a function of one blob and of its weights by slot.

    convolution      y[m, o] = b[m] + sum over t of w[m, t] x[o * stride - begin + t * dilation]
    deconvolution    y[i * stride - begin + t] += w[t] x[i], and b: the two change places in the other direction

Source: NeuralNetwork.proto, ConvolutionLayerParams, InnerProductLayerParams, ActivationParams, SoftmaxLayerParams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.core.errors import RuleError, Unsupported
from harness.core.instance import Graph
from harness.declare import Call
from suites.nn import dialect, layers, schemas, weights
from suites.nn.wire import Message
from suites.semantics.conv import transposed_geometry
from suites.semantics.window import geometry

Array = np.ndarray
Slots = Mapping[str, Array]
# value, and derivative told of the value
_ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "ReLU": (lambda x: np.maximum(x, 0.0), lambda y: (y > 0).astype(np.float64)),
    "tanh": (np.tanh, lambda y: 1.0 - y * y),
    "sigmoid": (lambda x: 1.0 / (1.0 + np.exp(-x)), lambda y: y * (1.0 - y)),
}


@dataclass
class Layer:
    """A layer of a network: its name, what it is, its blobs, and its weights.

    updatable: slots of the weights that are trained.  forward: ``fn(x, weights) -> y``.
    backward: ``fn(x, y, gradient of y, weights) -> (gradient of x, gradients by slot)``.
    """

    name: str
    kind: str
    input: str
    output: str
    weights: dict[str, Array]
    updatable: tuple[str, ...]
    forward: Callable[[Array, Slots], Array]
    backward: Callable[[Array, Array, Array, Slots], tuple[Array, dict[str, Array]]]


def layer(m: Message) -> Layer:
    """Raises Unsupported, by name, for a layer or an activation that is not computed here."""
    name, kind = m.get("name", ""), next((k for k in m if isinstance(m[k], dict)), "none")
    if kind not in _MAKERS:
        raise Unsupported(f"training through {kind} ({name})")
    held, forward, backward = _MAKERS[kind](name, m[kind])
    marked = tuple(s for s in held if m.get("isUpdatable") and m[kind][s].get("isUpdatable"))
    return Layer(name, kind, m["input"][0], m["output"][0], held, marked, forward, backward)


def _held(name: str, op: str, body: Message, attr: Callable[[str], Any]) -> dict[str, Array]:
    """Weights and bias as f64 in the shapes that the layer states."""
    out = {}
    for slot in ("weights", "bias") if body.get("hasBias") else ("weights",):
        shape = weights.stored_shape(op, slot, attr)
        groups = weights.groups_of(op, attr)
        out[slot] = weights.array(body[slot], shape, f"{name}/{slot}", groups).astype(np.float64)
    return out


# -- inner product, activation, softmax


def _inner(name: str, body: Message) -> Any:
    held = _held(name, "innerProduct", body, body.__getitem__)

    def rows(x: Array) -> Array:
        """Blobs of rank 4 and 5 are folded: their last three axes are the channel."""
        return x.reshape(*x.shape[:-3], -1) if x.ndim > 3 else x

    def forward(x: Array, w: Slots) -> Array:
        y = rows(x) @ w["weights"].T + w.get("bias", 0.0)
        return y[..., None, None] if x.ndim > 3 else y

    def backward(x: Array, y: Array, g: Array, w: Slots) -> Any:
        flat = g.reshape(-1, w["weights"].shape[0])
        back = {"weights": flat.T @ rows(x).reshape(-1, w["weights"].shape[1]), "bias": flat.sum(0)}
        return (flat @ w["weights"]).reshape(x.shape), back

    return held, forward, backward


def _activation(name: str, body: Message) -> Any:
    function = next(iter(body), "none")
    if function not in _ACTIVATIONS:
        raise Unsupported(f"training through activation {function} ({name})")
    value, derivative = _ACTIVATIONS[function]
    return {}, lambda x, w: value(x), lambda x, y, g, w: (g * derivative(y), {})


def _softmax(name: str, body: Message) -> Any:
    """Over the channels, the third axis from the end; over a blob of lower rank as a whole."""

    def axes(x: Array) -> Any:
        return -3 if x.ndim > 2 else None

    def forward(x: Array, w: Slots) -> Array:
        e = np.exp(x - x.max(axes(x), keepdims=True))
        return e / e.sum(axes(x), keepdims=True)

    return {}, forward, lambda x, y, g, w: (y * (g - (g * y).sum(axes(x), keepdims=True)), {})


# -- convolutions


def _last(at: Any) -> tuple[Any, ...]:
    """The index of the last axes."""
    return (..., *at)


def _convolution(name: str, body: Message) -> Any:
    s = schemas.of_layer("convolution", body)
    attrs, _ = layers.decode(s, body, lambda net: Graph())
    version = dialect.effective(s.op, 1)
    held = _held(name, s.op, body, lambda a: attrs.get(a, s.attrs[a].default))
    turned = s.op.endswith(".isDeconvolution")

    def parameters(x: Array) -> dict[str, Any]:
        """Of one blob: strides, dilations, pads and so on, as the meaning takes them."""
        layers.check_lists(s, attrs)
        return version.decode(Call(version, attrs, {"x": x, **held}, 1))[1]

    def taps(x: Array, w: Array) -> tuple[Array, tuple[int, ...], tuple[int, ...], Iterator[Any]]:
        """(the small blob [n, c, *], extents of the wide one with its padding, where its own cells begin there, taps).

        A tap is (place in the kernel, slices of the wide blob that it meets, in step with the small one)."""
        p, k = parameters(x), w.shape[2:]
        flat = x.reshape(-1, *x.shape[-3:])
        if turned:
            st, di, pads, sizes = transposed_geometry(
                flat.shape[2:], k, p["strides"], p["dilations"], p["pads"], p["padding"], None, p["output_shape"], True
            )
            small, wide = flat.shape[2:], sizes
        else:
            here = geometry(flat.shape[2:], k, p["strides"], p["dilations"], p["pads"], p["padding"])
            st, di, pads, small, wide = here.strides, here.dilations, here.pads, here.sizes, flat.shape[2:]
        reach = [(n - 1) * t + (e - 1) * d + 1 for n, t, e, d in zip(small, st, k, di)]
        full = tuple(max(r, b + n) for r, b, n in zip(reach, pads, wide))
        places = (
            (at, tuple(slice(a * d, a * d + (n - 1) * t + 1, t) for a, d, n, t in zip(at, di, small, st)))
            for at in np.ndindex(*k)
        )
        return flat, full, pads[:2], places

    def groups(x: Array) -> int:
        return int(parameters(x)["groups"])

    def spread(v: Array, full: tuple[int, ...], begin: tuple[int, ...]) -> Array:
        """A wide blob among zeros."""
        if any(b < 0 for b in begin):
            raise Unsupported(f"training through {s.op} ({name}): an output beyond what the kernels reach")
        out = np.zeros((*v.shape[:2], *full))
        out[:, :, begin[0] : begin[0] + v.shape[2], begin[1] : begin[1] + v.shape[3]] = v
        return out

    def cut(v: Array, like: tuple[int, ...], begin: tuple[int, ...]) -> Array:
        return v[:, :, begin[0] : begin[0] + like[0], begin[1] : begin[1] + like[1]]

    def by_group(v: Array, g: int) -> Array:
        return v.reshape(v.shape[0], g, v.shape[1] // g, *v.shape[2:])

    def forward(x: Array, w: Slots) -> Array:
        k, g = w["weights"], groups(x)
        flat, full, begin, places = taps(x, k)
        if turned:
            sizes = transposed_geometry(flat.shape[2:], k.shape[2:], *_of(parameters(x)))[3]
            y = np.zeros((len(flat), g, k.shape[1], *full))
            blocks = k.reshape(g, -1, *k.shape[1:])  # [groups, in, out / groups, *]
            for at, where in places:
                y[_last(where)] += np.einsum("ngchw,gcm->ngmhw", by_group(flat, g), blocks[_last(at)])
            y = cut(y.reshape(len(flat), -1, *full), sizes, begin)
        else:
            wide, blocks = spread(flat, full, begin), k.reshape(g, -1, *k.shape[1:])  # [groups, out, in / groups, *]
            y = sum(
                np.einsum("ngchw,gmc->ngmhw", by_group(wide, g)[_last(where)], blocks[_last(at)])
                for at, where in places
            )
            y = y.reshape(len(flat), -1, *y.shape[3:])
        if "bias" in w:
            y = y + w["bias"][:, None, None]
        return y.reshape(*x.shape[:-3], *y.shape[1:])

    def backward(x: Array, y: Array, gradient: Array, w: Slots) -> Any:
        k, g = w["weights"], groups(x)
        flat, full, begin, places = taps(x, k)
        gy = gradient.reshape(-1, *gradient.shape[-3:])
        blocks = k.reshape(g, -1, *k.shape[1:])
        found = np.zeros(blocks.shape)
        if turned:
            wide, gx = spread(gy, full, begin), np.zeros(by_group(flat, g).shape)
            for at, where in places:
                seen = by_group(wide, g)[_last(where)]
                found[_last(at)] = np.einsum("ngchw,ngmhw->gcm", by_group(flat, g), seen)
                gx += np.einsum("ngmhw,gcm->ngchw", seen, blocks[_last(at)])
            gx = gx.reshape(flat.shape)
        else:
            wide, back = spread(flat, full, begin), np.zeros(by_group(spread(flat, full, begin), g).shape)
            for at, where in places:
                found[_last(at)] = np.einsum("ngchw,ngmhw->gmc", by_group(wide, g)[_last(where)], by_group(gy, g))
                back[_last(where)] += np.einsum("ngmhw,gmc->ngchw", by_group(gy, g), blocks[_last(at)])
            gx = cut(back.reshape(len(flat), -1, *full), flat.shape[2:], begin)
        return gx.reshape(x.shape), {"weights": found.reshape(k.shape), "bias": gy.sum((0, 2, 3))}

    return held, forward, backward


def _of(p: Mapping[str, Any]) -> tuple[Any, ...]:
    return p["strides"], p["dilations"], p["pads"], p["padding"], None, p["output_shape"], True


_MAKERS: dict[str, Callable[[str, Message], Any]] = {
    "innerProduct": _inner,
    "convolution": _convolution,
    "activation": _activation,
    "softmax": _softmax,
}


def like(target: Any, y: Array) -> Array:
    """A target in the shape of the blob that it is compared with.  Raises RuleError "target-fits"."""
    t = np.asarray(target, np.float64)
    if t.size != y.size:
        raise RuleError("target-fits", f"{list(t.shape)}, expected {y.size} elements as in {list(y.shape)}")
    return t.reshape(y.shape)
