"""What a respelt program has to obey beyond what the reference checks of each node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.core.errors import OpconformError
from harness.core.instance import Graph, Node
from harness.core.quiet import quiet
from suites.passes.program import LANGUAGE
from suites.programs.respell import View
from suites.programs.values import filled

RANDOMISED = 10  # elements from which on WeightRandomizer takes a constant for a weight


def _ranks(v: View, node: Node, slot: str) -> tuple[int, ...]:
    name = node.inputs.get(slot)
    return v.values[name].shape if isinstance(name, str) else ()


def _attention(v: View, node: Node) -> bool:
    """iOS18 scaled_dot_product_attention, query: tensor<[B, *?, L, E]>, at least three axes.  The products are divided
    by the root of E, which is not 0."""
    shape = _ranks(v, node, "query")
    return len(shape) >= 3 and shape[-1] > 0


def _gather_along_axis(v: View, node: Node) -> bool:
    """iOS15 gather_along_axis returns a tensor<*D> of the shape of indices: indices have the extents of x, but on the
    axis."""
    x, at = _ranks(v, node, "x"), _ranks(v, node, "indices")
    given = node.inputs.get("axis")
    axis = int(v.g.consts[given]) if isinstance(given, str) and given in v.g.consts else 0
    return all(m == n or k == axis % len(x) for k, (m, n) in enumerate(zip(x, at, strict=True)))


def _stft(v: View, node: Node) -> bool:
    """complex_stft refers to torch.stft, whose input is one signal or a batch of them."""
    return len(_ranks(v, node, "input")) <= 2


def _reshape(v: View, node: Node) -> bool:
    """iOS15 reshape, shape: tensor<[K], i32>."""
    return len(_ranks(v, node, "shape")) == 1


def _complex(v: View, node: Node) -> bool:
    """complex: real_data and imag_data have one shape, which a type check proves of equal symbols only; a constant has
    none."""
    symbols = v.g.meta.get("symbols", {})
    rows = {tuple(symbols.get(f"p{k}", [""] * len(t.shape))) for k, t in enumerate(v.inputs)}
    given = (node.inputs.get(slot) for slot in ("real_data", "imag_data"))
    rows |= {("",) * v.g.consts[n].ndim for n in given if isinstance(n, str) and n in v.g.consts}
    return len(rows) <= 1


def _prelu(v: View, node: Node) -> bool:
    """iOS15 prelu: x has rank 3 to 5.  alpha: its length must match the second dimension of x.  An extent that is left
    open has no length: the channels of x are the same whatever extents the symbols have."""
    if not 3 <= len(_ranks(v, node, "x")) <= 5:
        return False
    symbols: dict[str, list[str]] = v.g.meta.get("symbols", {})
    if not symbols:
        return True
    data = []
    for k, t in enumerate(v.inputs):
        open_ = symbols.get(f"p{k}", [""] * len(t.shape))
        data.append(np.zeros([n + bool(s) for n, s in zip(t.shape, open_)], filled(t).dtype))
    before = v.g.nodes[: next(k for k, n in enumerate(v.g.nodes) if n is node)]
    try:
        with quiet:
            scope = LANGUAGE.hold(Graph(v.g.inputs, before, [], v.g.consts, v.g.meta), data, v.opset)
    except OpconformError:  # another node has no such extents
        return True
    x = node.value("x")
    return bool(scope[x].shape[1] == v.values[x].shape[1])


def _while_loop(v: View, node: Node) -> bool:
    """iOS15 while_loop: the body takes the loop variables and returns values of their types.  Its blocks state the
    shapes; a loop that happens to run no iteration shows no misfit."""
    given = [v.values[n].shape for n in node.inputs["loop_vars"] or ()]
    return all(
        given == [tuple(of.shape) for _, of in block.inputs]
        for block in node.attrs.values()
        if isinstance(block, Graph)
    )


_NODES: dict[str, Callable[[View, Node], bool]] = {
    "complex": _complex,
    "complex_stft": _stft,
    "gather_along_axis": _gather_along_axis,
    "prelu": _prelu,
    "reshape": _reshape,
    "scaled_dot_product_attention": _attention,
    "while_loop": _while_loop,
}


def _symbols(v: View) -> bool:
    """A symbol has one extent wherever it stands."""
    met: dict[str, int] = {}
    symbols: dict[str, list[str]] = v.g.meta.get("symbols", {})
    pairs = [(s, n) for k, t in enumerate(v.inputs) for s, n in zip(symbols.get(f"p{k}", ()), t.shape) if s]
    return all(met.setdefault(s, n) == n for s, n in pairs)


def _any_weights(v: View) -> bool:
    """Of a program whose pass makes other weights: no output hangs on them."""
    if not v.g.meta.get("any_weights"):
        return True
    other = Graph(v.g.inputs, v.g.nodes, v.g.outputs, {k: _other(a) for k, a in v.g.consts.items()}, v.g.meta)
    data = [filled(t, 2) for t in v.inputs]  # an input that became a constant has the data of 1
    plain = [_finite(x) for x in data]  # beside an infinity or NaN no weight shows
    with quiet:
        for some in (data, plain, [_negated(x) for x in data], [_negated(x) for x in plain]):
            a, b = (LANGUAGE.run(g, some, v.opset) for g in (v.g, other))
            if not all(np.array_equal(a[n], b[n], equal_nan=np.asarray(a[n]).dtype.kind == "f") for n in v.g.outputs):
                return False
    return True


def _finite(x: np.ndarray) -> np.ndarray:
    """Numbers between -2 and 2 in place of floats."""
    return ((np.arange(x.size) * 7 % 17 - 8) / 4).reshape(x.shape).astype(x.dtype) if x.dtype.kind in "fV" else x


def _negated(x: np.ndarray) -> np.ndarray:
    """Data with which a larger or a smaller operand is another one."""
    return ~x if x.dtype.kind == "b" else np.negative(x)


def _other(a: np.ndarray) -> np.ndarray:
    """Another weight, where a constant is one."""
    if a.size < RANDOMISED or a.dtype.kind not in "fiu":
        return a
    return (np.arange(a.size).reshape(a.shape) % 7 / 8 + 0.0625).astype(a.dtype)


def valid(v: View) -> bool:
    """Is a program one that MIL's pages describe, and that a pass has to leave as it is?"""
    return all(_NODES[n.op](v, n) for n in v.g.nodes if n.op in _NODES) and _symbols(v) and _any_weights(v)
