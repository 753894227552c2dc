"""Strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.core.errors import RuleError
from harness.declare import Call, Checks, Draw, Evaluation, Sampling, T, exact, rounded, underspecified
from suites.onnx import op
from suites.semantics import text as s

_WORDS = ("a", "the", "The", "monday", "Tuesday", "", "x y", "éa", "12")
_LINES = ("a,b,,c", "", "a b  c", ",", "abc", " lead", "trail ", "a,b", "1,2,3,4", "x")


def words(d: Draw, shape: tuple[int, ...], pool: tuple[str, ...] = _WORDS) -> T:
    """A tensor of strings out of a pool."""
    return T(shape, values=[d.pick(pool) for _ in range(int(np.prod(shape)))])


def _draw_concat(d: Draw) -> dict:
    full = d.shape(0, 4)
    return {"X": words(d, d.broadcast_from(full)), "Y": words(d, full)}


op(
    "StringConcat",
    Evaluation(lambda c: s.concat(c.inputs["X"], c.inputs["Y"]), exact(), "ONNX StringConcat-20"),
    Sampling(_draw_concat),
)


def _draw_split(d: Draw) -> dict:
    out: dict[str, Any] = {"X": words(d, d.shape(0, 4, lo=1), _LINES)}
    if d.int(0, 2):
        out["delimiter"] = d.pick((",", "", " ", ",,"))
    if d.chance(3):
        far = (2**31 - 1, 2**63 - 1)  # "as many splits as possible"; of 0 it is not said whether space at the end goes
        out["maxsplit"] = d.pick(far) if d.chance(6) else d.int(0 if out.get("delimiter") else 1, 3)
    return out


op(
    "StringSplit",
    Evaluation(
        lambda c: s.split(c.inputs["X"], c.attr("delimiter"), c.attr("maxsplit")), exact(), "ONNX StringSplit-20"
    ),
    Sampling(_draw_split, outs=2),
)


def _normalize(c: Call) -> np.ndarray:
    return s.normalize(
        c.inputs["X"],
        c.attr("case_change_action", "NONE"),
        c.attr("stopwords") or (),
        bool(c.attr("is_case_sensitive", 0)),
    )


def _draw_normalize(d: Draw) -> dict:
    n = d.int(1, 6)
    out: dict[str, Any] = {
        "X": words(d, (n,) if d.bool() else (1, n), ("a", "the", "The", "monday", "Tuesday", "x y", "12", ""))
    }
    if d.bool():
        out["stopwords"] = d.subset(("the", "monday", "12"), 1)
    if d.bool():
        out["is_case_sensitive"] = d.int(0, 1)
    if d.bool():
        out["case_change_action"] = d.pick(("LOWER", "UPPER", "NONE"))
    return out


op("StringNormalizer", Evaluation(_normalize, exact(), "ONNX StringNormalizer-10"), Sampling(_draw_normalize))

# What RE2 takes otherwise than Perl and Python: \w and \d are ASCII, [[:alpha:]] and \pL are classes, \z ends the text.
_MATCHED = (*_WORDS, "É", "٣", "aé", "a.b", "a\n")
_PATTERNS = (
    *("[a-z]+", ".*day", "", r"\d{2}", "(a|the)", "[^x]*", "T.*"),
    *(r"\w+", r"\d+", r"[^\W]*", r"\pL+", r"\p{Greek}?\PN*", "[[:alpha:]]+", "[[:^digit:]]*", "(?i)THE|É", "(?s).*"),
    *("(?P<day>.+)day", "(?U)a+", r"\Qa.b\E", r"[a-z]*\z", r"x\x{20}y", "(?:a|é){1,2}", r"\s*", "(a+)+$"),
)
# Backreference, look-around, possessive and atomic groups, comments, too high a count, \Z, an open group, a bad range.
_NO_PATTERNS = (
    *(r"(a)\1", "(?P<n>a)(?P=n)", "a(?=b).*", "(?!x).*", "(?<=a)b", "(?<!x)a", "a++", "(?>a)", "(?#a)a"),
    *("a{1001}", r"a\Z", "(a", "[b-a]", "*a", r"\p{Nowhere}"),
)


def _draw_match(d: Draw) -> dict:
    return {"X": words(d, d.shape(0, 5), _MATCHED), "pattern": d.pick(_PATTERNS)}


op(
    "RegexFullMatch",
    Evaluation(lambda c: s.full_match(c.inputs["X"], c.attr("pattern", "")), exact(), "ONNX RegexFullMatch-20"),
    Sampling(_draw_match),
    Checks(breaks={"re2-syntax": lambda d: {**_draw_match(d), "pattern": d.pick(_NO_PATTERNS)}}),
)


def _grams(c: Call) -> tuple[np.ndarray, np.ndarray]:
    """(what each n-gram of the pool counts, [rows, n-grams]; its coordinate).

    Raises RuleError "one-of-pools", "rank-1-or-2", and what the meaning raises."""
    a = c.attr
    if bool(a("pool_strings")) == bool(a("pool_int64s")):
        raise RuleError("one-of-pools", "either pool_strings or pool_int64s is given")
    if c.inputs["X"].ndim not in (1, 2):
        raise RuleError("rank-1-or-2", f"X has rank {c.inputs['X'].ndim}")
    found = s.ngrams(
        c.inputs["X"],
        a("pool_strings") or a("pool_int64s"),
        a("ngram_counts"),
        a("ngram_indexes"),
        shortest=a("min_gram_length"),
        longest=a("max_gram_length"),
        skips=a("max_skip_count"),
        mode=a("mode"),
        weights=a("weights"),
    )
    return found, np.array(a("ngram_indexes"), np.int64)


def _ngrams(c: Call) -> np.ndarray:
    """N-grams of one coordinate are counted together."""
    found, at = _grams(c)
    out = np.zeros((len(found), int(at.max()) + 1))
    for k, i in enumerate(at.tolist() if len(found) else ()):
        out[:, i] += found[:, k]
    return out[0] if c.inputs["X"].ndim == 1 else out


def _shared(c: Call) -> str | None:
    """A coordinate that several n-grams have holds the count of one of them, or of all."""
    found, at = _grams(c)
    if len(set(at.tolist())) == len(at) or not len(found):
        return None
    many = np.zeros(int(at.max()) + 1, np.int64)
    readings = [np.zeros((len(found), len(many))) for _ in at]
    for k, i in enumerate(at.tolist()):
        for r in readings[many[i] :]:
            r[:, i] = found[:, k]
        many[i] += 1
    vector = c.inputs["X"].ndim == 1
    told = [(r[0] if vector else r).astype(np.float32) for r in readings[: many.max()]]
    return underspecified("TfIdfVectorizer: n-grams that share a coordinate", many > 1, *told)


def _draw_ngrams(d: Draw) -> dict:
    """Up to three tokens long; the coordinates may leave some out; now and then all n-grams share one, there is one
    alone, or the coordinates are far beyond any of no row."""
    text = d.types["T"].kind == "s"
    tokens: list[Any] = ["a", "b", "c", "d"] if text else [1, 2, 3, 4]
    if d.chance(4):
        ends = (
            (0, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
            if d.types["T"].bits == 64
            else (0, -1, 2**31 - 1, -(2**31))
        )
        tokens = d.shuffle(["", "é", "a b", "d"] if text else ends)[:4]
    longest = 1 if d.chance(12) else d.int(2, 3)
    kept: list[Any] = tokens[: d.int(0, 3)]
    if d.chance(8):  # a long pool of 1-grams
        kept = [*tokens, *([f"w{k}" for k in range(16)] if text else range(20, 36))]
    starts, count = [0], len(kept)
    for n in range(2, longest + 1):
        starts.append(len(kept))
        grams = {(tokens[k], *(d.pick(tokens) for _ in range(n - 1))) for k in range(d.int(1, 3))}
        count += len(grams)
        kept += [x for gram in sorted(grams) for x in gram]
    if not kept or (longest == 1 and d.bool()):
        kept, count, starts = tokens[:1], 1, [0]
    n, far = d.int(1, 9), d.chance(24) and not d.breaking
    shape = (0, n) if far else (n,) if d.bool() else (d.int(1, 3), n)
    low = d.int(1, longest)
    out: dict[str, Any] = {
        "X": T(shape, values=[d.pick(tokens) for _ in range(int(np.prod(shape)))]),
        "mode": d.pick(("TF", "IDF", "TFIDF")),
        "ngram_counts": starts,
        "ngram_indexes": d.shuffle(range(count + (d.int(1, 3) if d.chance(3) else 0)))[:count],
        "min_gram_length": low,
        "max_gram_length": d.int(low, longest),
        "max_skip_count": d.int(0, 3),
        "pool_strings" if text else "pool_int64s": kept,
    }
    if d.chance(12):  # longer than any of the pool
        out |= {"max_gram_length": 2**31 - 1, "min_gram_length": d.pick((low, low, 2**31 - 1))}
    if (far and d.bool()) or d.chance(512):  # a runtime may count them one by one, row by row
        out["max_skip_count"] = 2**31 - 1
    if far:
        out["ngram_indexes"] = [2**31 - 1, *out["ngram_indexes"][1:]]
    elif count > 1 and d.chance(12) and not d.breaking:
        out["ngram_indexes"] = [d.int(0, 2)] * count
    if d.bool():
        out["weights"] = [d.int(1, 16) / 4 for _ in range(count)]
    return out


def _negative_index(d: Draw) -> dict:
    out = _draw_ngrams(d)
    return {**out, "ngram_indexes": [-1, *out["ngram_indexes"][1:]]}


def _deep(d: Draw) -> dict:
    out = _draw_ngrams(d)
    words = out["X"].values
    return {**out, "X": T((1, 1, len(words)), values=words)}


def _with(**more: Any) -> Any:
    return lambda d: {**_draw_ngrams(d), **more}


op(
    "TfIdfVectorizer",
    Evaluation(_ngrams, rounded(1), "ONNX TfIdfVectorizer-9"),
    Sampling(_draw_ngrams),
    Checks(
        ambiguous=_shared,
        breaks={
            "weight-per-gram": _with(weights=[0.5] * 19),
            "counts-ascend": _with(ngram_counts=[0, 99]),
            "lengths-ordered": _with(min_gram_length=2, max_gram_length=1),
            "skips-nonnegative": _with(max_skip_count=-1),
            "indexes-nonnegative": _negative_index,
            "rank-1-or-2": _deep,
        },
    ),
)
