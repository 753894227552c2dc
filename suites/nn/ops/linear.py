"""Products with matrices.  Source: NeuralNetwork.proto, InnerProduct, Embedding, BatchedMatMul, DotProduct."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.dtypes import U8
from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Fn, Sampling, Slotted, Spelling, T, underspecified
from suites.nn import op
from suites.nn.spell import Weight
from suites.semantics import coreml as s
from suites.semantics import linear

# -- innerProduct: ranks 3 to 5 are folded to a matrix


def fold(shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(axes that stay, ones that follow the channel, extent of the folded channel) of an input shape."""
    if len(shape) <= 3:
        return shape[:-1], (), shape[-1]
    lead = shape[: len(shape) - 3]
    return lead, (1, 1), int(np.prod(shape[-3:]))


DYNAMIC = "int8-dynamic-quantisation: the steps of the input"


def _dynamic(c: Call, x: str = "x") -> str | None:
    """The text: "this layer, at runtime, quantizes the floating point input blob to int8 before applying an inner
    product".  With which steps is open.

    Symmetric steps are max|x| / 127.  Those of the range with zero in it are at most 2 max|x| / 255, and rounding the
    zero point moves an end by half of one.  So every element is off by at most one step of max|x| / 127, and the result
    by the sum of as many weights.  NaN and infinity have no steps: they leave all open."""
    if not c.attr("int8DynamicQuantize") or c.inputs.get("weights") is None:
        return None
    blob = np.abs(np.asarray(c.inputs[x], np.float64))
    with np.errstate(all="ignore"):
        step = float(np.float32(blob.max(initial=0.0) / 127.0)) * (1.0 + 2.0**-20)
    if not np.isfinite(step):
        return underspecified(DYNAMIC, np.True_)
    meaning = c.version.meaning
    assert meaning is not None
    tensors, params = c.version.decode(c)
    product = np.asarray(meaning.fn(**tensors, **params), np.float64)
    off = step * np.abs(np.asarray(c.inputs["weights"], np.float64)).sum(-1)
    within = np.broadcast_to(off, product.shape) + np.abs(product) * 2.0**-20
    return underspecified(DYNAMIC, np.ones(product.shape, bool), product, within=within) if step else None


def _no_bias(c: Call) -> None:
    """Raises RuleError "int8-bias": the text requires hasBias == false."""
    if c.attr("int8DynamicQuantize") and c.attr("hasBias"):
        raise RuleError("int8-bias", "expected hasBias false beside int8DynamicQuantize")


def _fold_x(c: Call) -> np.ndarray:
    _no_bias(c)
    x = c.inputs["x"]
    lead, _, n = fold(x.shape)
    if n != c.attr("inputChannels"):
        raise RuleError("channels-agree", f"{n} channels, inputChannels {c.attr('inputChannels')}")
    return x.reshape(*lead, n)


def _unfold(c: Call, results: list[Any]) -> list[Any]:
    lead, ones, _ = fold(c.inputs["x"].shape)
    return [results[0].reshape(*lead, results[0].shape[-1], *ones)]


def _bias(d: Draw, n: int) -> dict[str, Any]:
    return {"hasBias": True, "bias": T((n,), const=True)} if d.bool() else {}


def _width(d: Draw) -> int:
    """How many elements a result has along its channel."""
    return d.pick((16, 130, 257)) if d.chance(16) else d.dim(1)


def _draw_inner(d: Draw) -> dict[str, Any]:
    shape = d.shape(1)
    n, o = fold(shape)[2], _width(d)
    return {"x": T(shape), "weights": T((o, n), const=True), "inputChannels": n, "outputChannels": o, **_bias(d, o)}


def _inner_apart(d: Draw) -> dict[str, Any]:
    out = _draw_inner(d)
    n = out["inputChannels"] + 1
    return {**out, "inputChannels": n, "weights": T((out["outputChannels"], n), const=True)}


op(
    "innerProduct",
    linear.linear,
    Spelling(x=Fn(_fold_x), w=Weight("weights"), b=Weight("bias", flag="hasBias"), out=_unfold),
    Sampling(_draw_inner),
    Checks(ambiguous=_dynamic, breaks={"channels-agree": _inner_apart}),
)


# -- embeddings


def _embedded(c: Call) -> np.ndarray:
    x = c.inputs["x"]
    if x.ndim not in (4, 5) or x.shape[-3:] != (1, 1, 1):
        raise RuleError("trailing-ones", f"shape {list(x.shape)}")
    return x.reshape(x.shape[:-3]).astype(np.int64)


def _looked_up(d: Draw, shape: tuple[int, ...], v: int) -> T:
    """Places in a dictionary of ``v``; now and then 0 is -0."""
    if not d.chance(12):
        return T(shape, recipe=f"index:{v}")
    return T(shape, values=[float(d.int(1, v - 1)) if v > 1 and d.bool() else -0.0 for _ in range(int(np.prod(shape)))])


_HEAVY = 300  # one instance in so many


def _far(d: Draw) -> tuple[list[float], T, int] | None:
    """Now and then places beyond all whole numbers that f32 counts one by one, in a dictionary of one bit each."""
    if d.breaking or not d.chance(_HEAVY):
        return None
    n = 2**24 + 3
    table = {"bits": 1, "lut": [d.int(-64, 64) / 16 for _ in "01"]}
    return d.shuffle((float(n - 1), 0.0)), T((1, n), "ints:0:1", U8, True, quant=table), n


def _draw_embedding(d: Draw) -> dict[str, Any]:
    if far := _far(d):
        at, table, n = far
        return {"x": T((2, 1, 1, 1), values=at), "weights": table, "inputDim": n, "outputChannels": 1, **_bias(d, 1)}
    v, o = d.dim(1), _width(d)
    x = _looked_up(d, (*(d.dim(1, 6) for _ in range(d.int(1, 2))), 1, 1, 1), v)
    return {"x": x, "weights": T((o, v), const=True), "inputDim": v, "outputChannels": o, **_bias(d, o)}


def _spoilt(draw: Any) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        n = int(np.prod(out["x"].shape))
        bad = d.pick((-1, out.get("inputDim", out.get("vocabSize"))))
        return {**out, "x": T(out["x"].shape, values=[float(bad)] * n)}

    return fn


def _wide(draw: Any) -> Any:
    def fn(d: Draw) -> dict[str, Any]:
        out = draw(d)
        shape = (*out["x"].shape[:-1], 2)
        return {**out, "x": T(shape, recipe=out["x"].recipe)}

    return fn


op(
    "embedding",
    s.embedding,
    Spelling(
        indices=Fn(_embedded),
        w=Weight("weights"),
        bias=Weight("bias", flag="hasBias"),
        out=lambda c, r: [r[0].reshape(*r[0].shape, 1, 1)],
    ),
    Sampling(_draw_embedding),
    Checks(breaks={"index-in-range": _spoilt(_draw_embedding), "trailing-ones": _wide(_draw_embedding)}),
)


def _embedded_nd(c: Call) -> np.ndarray:
    x = c.inputs["x"]
    if x.ndim < 2 or x.shape[-1] != 1:
        raise RuleError("trailing-one", f"shape {list(x.shape)}")
    return x.reshape(x.shape[:-1]).astype(np.int64)


def _draw_embedding_nd(d: Draw) -> dict[str, Any]:
    if far := _far(d):
        at, table, n = far
        return {"x": T((2, 1), values=at), "weights": table, "vocabSize": n, "embeddingSize": 1, **_bias(d, 1)}
    v, o = d.dim(1), _width(d)
    x = _looked_up(d, (*d.part(1, 4), 1), v)
    return {"x": x, "weights": T((o, v), const=True), "vocabSize": v, "embeddingSize": o, **_bias(d, o)}


op(
    "embeddingND",
    s.embedding,
    Sampling(_draw_embedding_nd),
    Checks(breaks={"index-in-range": _spoilt(_draw_embedding_nd), "trailing-one": _wide(_draw_embedding_nd)}),
    indices=Fn(_embedded_nd),
    w=Weight("weights"),
    bias=Weight("bias", flag="hasBias"),
)


# -- batchedMatmul: two inputs, or one and a matrix stored column-major


def _right(c: Call) -> np.ndarray:
    _no_bias(c)
    return c.inputs["b"] if "b" in c.inputs else c.inputs["weights"].T


def _added(c: Call) -> np.ndarray | None:
    """The stored parameters "are ignored when there are two inputs", the bias among them."""
    return c.inputs["bias"] if c.attr("hasBias") and "b" not in c.inputs else None


def _turned_vector(c: Call) -> str | None:
    """A vector "is converted to a 2-D tensor", and the flags transpose "the left matrix", "the right matrix": whether
    that is one of them is not said."""
    pairs = [(c.inputs.get(slot), c.attr(flag)) for slot, flag in (("a", "transposeA"), ("b", "transposeB"))]
    turned = "b" in c.inputs and any(flag and x is not None and x.ndim == 1 and x.size > 1 for x, flag in pairs)
    return "transpose-of-a-vector" if turned else _dynamic(c, "a")


def _draw_product(d: Draw) -> dict[str, Any]:
    if d.bool():
        n, m = d.dim(1), _width(d)
        flags = {"transposeA": d.bool(), "transposeB": d.bool()} if d.bool() else {}  # ignored
        return {
            "a": T((*d.part(0, 4), n)),
            "weights": T((m, n), const=True),
            "weightMatrixFirstDimension": n,
            "weightMatrixSecondDimension": m,
            **_bias(d, m),
            **flags,
        }
    v = linear.matmul.derive(d)
    return {
        "a": v["x"],
        "b": v["y"],
        "transposeA": d.bool() if len(v["x"].shape) == 1 else v["transpose_x"],
        "transposeB": d.bool() if len(v["y"].shape) == 1 else v["transpose_y"],
    }


def _product_apart(d: Draw) -> dict[str, Any]:
    k = d.int(2, 5)
    return {"a": T((3, k)), "b": T((k + 1, 2))}


op(
    "batchedMatmul",
    s.batched_matmul,
    Sampling(_draw_product),
    Checks(ambiguous=_turned_vector, breaks={"contracted-agrees": _product_apart}),
    x=Slotted("a"),
    y=Fn(_right),
    bias=Fn(_added),
    transpose_x="transposeA",
    transpose_y="transposeB",
    stack=Fn(lambda c: "b" in c.inputs),
)


def _draw_dot(d: Draw) -> dict[str, Any]:
    """Now and then a sum that f16 does not count."""
    v: dict[str, Any] = dict.fromkeys("ab", T((2049, 1, 1))) if d.chance(24) else s.dot_channels.derive(d)
    return {"a": v["a"], "b": v["b"], "cosineSimilarity": v.get("cosine", d.bool())}


op(
    "dot",
    s.dot_channels,
    Sampling(_draw_dot, ranks=(3, 5)),
    Checks(
        breaks={
            "rank-at-least-3": lambda d: dict.fromkeys("ab", T(tuple(d.int(1, 4) for _ in range(d.int(1, 2))))),
            "trailing-ones": lambda d: dict.fromkeys("ab", T((2, d.int(2, 3), 1))),
        }
    ),
    cosine="cosineSimilarity",
)
