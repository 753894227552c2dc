"""Text and hashing operators of the first releases, and bits from a counter: what their definitions fix, no more."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np

from harness.core.dtypes import int_range
from harness.declare import (
    Call,
    Checks,
    Context,
    Draw,
    Evaluation,
    Pattern,
    Sampling,
    T,
    accepted,
    any_order,
    statistical,
)
from suites.tflite import op
from suites.tflite.codecs import out_type

# -- SKIP_GRAM


def skip_grams(words: list[str], size: int, skip: int, shorter: bool) -> list[str]:
    """Words in their order joined by blanks, ``size`` of them (or fewer, when ``shorter``), between neighbours at most
    ``skip`` left out."""
    out = []
    for n in range(1 if shorter else size, min(size, len(words)) + 1):
        for at in combinations(range(len(words)), n):
            if all(b - a <= skip + 1 for a, b in pairwise(at)):
                out.append(" ".join(words[i] for i in at))
    return out


def _skip_gram(call: Call) -> list[Any]:
    text = call.inputs["input"].ravel()[0]
    text = text.decode() if isinstance(text, bytes) else text
    grams = skip_grams(
        text.split(),
        call.attr("ngram_size", 0),
        call.attr("max_skip_size", 0),
        bool(call.attr("include_all_ngrams", False)),
    )
    out = np.empty(len(grams), object)
    out[:] = grams
    return [out]


def _draw_skip_gram(d: Draw) -> dict[str, Any]:
    """Words between single blanks: how longer runs of whitespace are taken is not said."""
    words = ["".join(d.pick("abcdeyz") for _ in range(d.int(1, 4))) for _ in range(0 if d.chance(8) else d.int(1, 7))]
    far = (10, 2**31 - 1)
    return {
        "input": T((1,), values=[" ".join(words)]),
        "ngram_size": d.pick(far) if d.chance(8) else d.int(1, 4),
        "max_skip_size": d.pick(far) if d.chance(8) else d.int(0, 3),
        "include_all_ngrams": d.bool(),
    }


op(
    "SKIP_GRAM",
    Evaluation(
        _skip_gram,
        any_order(),
        "TFLite SKIP_GRAM: operands and options as stated at the kernel's head; the order of the grams is not",
    ),
    Sampling(_draw_skip_gram),
    Checks(stated={"input": "1"}, breaks={"shapes-stated": None}),  # "Dim = {1}"; the first of several is read
)

# -- LSH_PROJECTION


def _projected(ctx: Context, actual: np.ndarray) -> np.ndarray:
    """dense: bits; sparse: signature k in [k * 2**bits, (k + 1) * 2**bits); equal functions give equal bits; no bit
    where every weight is 0"""
    call = ctx.call
    functions = call.inputs["hash"]
    n, bits = functions.shape
    if call.attr("type") == "SPARSE":
        own = actual.astype(np.int64) - np.arange(n) * (1 << bits)
        ok = (own >= 0) & (own < 1 << bits)
        table = (own[:, None] >> np.arange(bits)[::-1]) & 1  # all bits of a row in one order, whichever it is
        rows = {functions[k].tobytes(): k for k in range(n)}
        same = np.array([own[k] == own[rows[functions[k].tobytes()]] for k in range(n)], bool)
    else:
        table = actual.reshape(n, bits)
        ok = (actual == 0) | (actual == 1)
        told = [f.tobytes() for f in functions.ravel()]  # 0 and -0 are hashed as other bytes
        first = {f: k for k, f in enumerate(told)}
        same = np.array([actual[k] == actual[first[f]] for k, f in enumerate(told)], bool)
    weight = call.inputs.get("weight")
    if weight is not None and not np.any(weight):
        underspecified = ~np.any(table, axis=1)
        same &= underspecified if call.attr("type") == "SPARSE" else np.repeat(underspecified, bits)
    return ok & same


def _lsh(call: Call) -> list[Any]:
    """One result that the definition allows, since the hash itself is the implementation's."""
    n, bits = call.inputs["hash"].shape
    if call.attr("type") == "SPARSE":
        return [(np.arange(n) * (1 << bits)).astype(np.int32)]
    return [np.zeros(n * bits, np.int32)]


def _draw_lsh(d: Draw) -> dict[str, Any]:
    """Hash functions among which some are equal."""
    n, bits, rows = d.int(1, 4), d.int(1, 8), d.int(1, 5)
    if d.chance(8):
        how = d.int(0, 4)
        n = (0, d.pick((17, 130, 260)), n, n, n)[how]
        bits = (bits, bits, 0, bits, 22)[how]
        rows = (rows, rows, rows, d.pick((17, 130, 260, 2100)), rows)[how]
    pool = [d.int(-50, 50) / 8 for _ in range(d.int(1, 4))]
    functions = [[d.pick(pool) for _ in range(bits)] for _ in range(n)]
    if n > 1 and d.bool():
        functions[-1] = functions[0]
    out: dict[str, Any] = {
        "hash": T((n, bits), values=[f for row in functions for f in row]),
        "input": T((rows, *(d.part(0, 7, 0) if d.chance(3) else d.part(0, 2, 1)))),
        "type": d.pick(("SPARSE", "DENSE")),
    }
    if d.bool():
        out["weight"] = T((rows,), "unit") if d.int(0, 3) else T((rows,), values=[0.0] * rows)
    return out


op(
    "LSH_PROJECTION",
    Evaluation(
        _lsh,
        accepted(_projected),
        "TFLite LSH_PROJECTION: a bit is the sign of the weighted sum of hash(function, row of the input); "
        "the hash is the implementation's",
    ),
    Sampling(_draw_lsh),
)

# -- STABLEHLO_RNG_BIT_GENERATOR


def _uniform_bits(ctx: Context) -> tuple[float, float, Any, Any, bool]:
    lo, hi = int_range(ctx.out)
    span = float(hi) - float(lo) + 1.0

    def below(x: np.ndarray) -> np.ndarray:
        return (x - lo) / span

    return float(lo), float(hi), below, lambda x: (x - lo + 1.0) / span, True


def _any_state(ctx: Context, actual: np.ndarray) -> np.ndarray:
    """any state, but a new one"""
    return np.full(actual.shape, bool(np.any(actual != ctx.call.inputs["initial_state"])))


def _bits(call: Call) -> list[Any]:
    t = out_type(call, 1)
    state = call.inputs["initial_state"]
    size = tuple(call.outs[1]["shape"])  # type: ignore[index]
    source = np.random.Generator(np.random.Philox(key=state.astype(np.uint64)[:2]))
    raw = (
        source.integers(0, 2**t.bits, size, np.dtype(f"u{t.bits // 8}").type, endpoint=False)
        if t.bits < 64
        else (source.integers(0, 2**64 - 1, size, np.uint64, endpoint=True))
    )
    return [state + np.uint64(1), raw.view(t.np)]


def _words(call: Call) -> str:
    """StableHLO rng_bit_generator: the state is ui64[2] for THREE_FRY, and ui64[2] or ui64[3] for PHILOX."""
    given = len(call.inputs["initial_state"])
    return str(given if call.attr("algorithm", "DEFAULT") == "PHILOX" and given in (2, 3) else 2)


def _draw_bits(d: Draw) -> dict[str, Any]:
    """PHILOX takes a state of 2 or 3 words, THREEFRY of 2; the shape stands in the result's type."""
    algorithm = d.pick(("DEFAULT", "PHILOX", "PHILOX", "THREEFRY"))
    words = d.pick((2, 3)) if algorithm == "PHILOX" else 2
    t = d.pick(d.version.schema.dtypes("T"))
    shape = list(d.shape(1, 3, 1))
    shape[0] *= d.pick((1, 4, 16))
    return {
        "initial_state": T((words,), "full"),
        "algorithm": algorithm,
        "@outs": 2,
        "@outputs": [{"dtype": "u64", "shape": [words]}, {"dtype": t.name, "shape": shape}],
    }


op(
    "STABLEHLO_RNG_BIT_GENERATOR",
    Evaluation(
        _bits,
        (accepted(_any_state), statistical(_uniform_bits)),
        "StableHLO rng_bit_generator: uniform bits, a function of the state; algorithms are implementation-defined "
        "variants",
    ),
    Sampling(_draw_bits),
    Checks(stated={"initial_state": Pattern(_words, (1, 1))}),
)
