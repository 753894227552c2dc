"""The small grammar of shapes: ``"n c *s"``.

A token is one axis (``n``), any number of axes (``*d``), axes that broadcast (``*#d``), or an expression over names
that came earlier (``c//groups`` one axis, ``*window(s,k,...)`` several).  Names follow jaxtyping.  A name that begins
with an underscore binds nothing: it may differ each time (``Variadic[Any[Array, "*_d"]]``: operands of any shapes).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

_NAME = re.compile(r"^[A-Za-z_]\w*$")


class ShapeMismatch(ValueError):
    """A shape does not fit its pattern; the message says which axis, what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Token:
    """text: as written.  name: the plain name, or None for an expression.  many: any number of axes.  broadcast:
    ``#``.  code: computes it from the names."""

    text: str
    name: str | None
    many: bool
    broadcast: bool
    code: CodeType


@cache
def parse(pattern: str) -> tuple[Token, ...]:
    """Tokens of a pattern; raises ValueError on bad syntax."""
    tokens = []
    for text in _split(pattern):
        body, many, broadcast = text, False, False
        if body.startswith("*"):
            many, body = True, body[1:]
        if body.startswith("#"):
            broadcast, body = True, body[1:]
        if _NAME.match(body):
            tokens.append(Token(text, body, many, broadcast, compiled(body)))
        else:
            try:
                code = compile(body, f"<dim {text}>", "eval")
            except SyntaxError:
                raise ValueError(f"dims {pattern!r}: cannot read {text!r}") from None
            tokens.append(Token(text, None, many, broadcast, code))
    return tuple(tokens)


def _split(pattern: str) -> list[str]:
    """Split on blanks outside brackets."""
    out, depth, cur = [], 0, ""
    for ch in pattern:
        if ch == " " and depth == 0:
            if cur:
                out.append(cur)
            cur = ""
            continue
        depth += ch in "([" or 0
        depth -= ch in ")]" or 0
        cur += ch
    return [*out, cur] if cur else out


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcast shape; raises ShapeMismatch."""
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for s in shapes:
        for i, n in enumerate(s, rank - len(s)):
            if n != 1:
                if out[i] not in (1, n):
                    raise ShapeMismatch(f"shapes {shapes} do not broadcast")
                out[i] = n
    return tuple(out)


def size(d: Any) -> int:
    """Product of the extents."""
    n = 1
    for x in d if isinstance(d, (tuple, list)) else (d,):
        n *= x
    return n


def reduced(d: tuple[int, ...], axes: Any, keepdims: bool) -> tuple[int, ...]:
    """Shape after reducing ``axes`` (None: all)."""
    r = len(d)
    gone = set(range(r)) if axes is None else {a % r for a in ((axes,) if isinstance(axes, int) else axes)}
    return tuple(1 if i in gone else n for i, n in enumerate(d) if keepdims or i not in gone)


def extent(d: tuple[int, ...], axes: Any) -> int:
    """Number of elements that a reduction over ``axes`` (None: all) folds into one."""
    r = len(d)
    if axes is None:
        return size(d)
    return size([d[a] for a in {a % r for a in ((axes,) if isinstance(axes, int) else axes)}])


def window(s: Any, k: Any, strides: Any, dilations: Any, pads: Any) -> tuple[int, ...]:
    """Output extents of a sliding window; pads = begins then ends."""
    n = len(s)
    return tuple(
        max(0, (s[i] + pads[i] + pads[n + i] - (dilations[i] * (k[i] - 1) + 1)) // strides[i] + 1) for i in range(n)
    )


FUNCTIONS: dict[str, Any] = {
    "size": size,
    "prod": size,
    "reduce": reduced,
    "extent": extent,
    "window": window,
    "broadcast": broadcast,
    "len": len,
    "max": max,
    "min": min,
    "abs": abs,
    "range": range,
    "sum": sum,
    "tuple": tuple,
    "int": int,
    "__builtins__": {},
}


def shape_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function usable in dim expressions under its own name."""
    FUNCTIONS[fn.__name__] = fn
    return fn


@cache
def compiled(text: str) -> CodeType:
    """An expression over names, such as a rule or a count, for ``evaluate``."""
    return compile(text, f"<{text}>", "eval")


def evaluate(code: CodeType, env: dict[str, Any]) -> Any:
    return eval(code, {**FUNCTIONS, **env})  # patterns are our own source text


def shape_of(tokens: tuple[Token, ...], env: dict[str, Any]) -> tuple[int, ...]:
    """The concrete shape of a pattern under bound names."""
    out: list[int] = []
    for t in tokens:
        v = env[t.name] if t.name is not None else evaluate(t.code, env)
        if t.many:
            out.extend(v)
        else:
            out.append(v)
    return tuple(out)


def bind(tokens: tuple[Token, ...], shape: tuple[int, ...], env: dict[str, Any], what: str = "tensor") -> None:
    """Match ``shape`` against a pattern, adding new names to ``env``; raises ShapeMismatch."""
    many = [i for i, t in enumerate(tokens) if t.many]
    if len(many) > 1:  # several variadic parts: all but one must be known
        parts = []
        unknown = 0
        for i in many:
            t = tokens[i]
            known = env.get(t.name) if t.name is not None else None
            if t.name is None:
                known = evaluate(t.code, env)
            unknown += known is None
            parts.append(known)
        if unknown > 1:
            raise ShapeMismatch(f"{what}: pattern is ambiguous")
        spare = len(shape) - (len(tokens) - len(many)) - sum(len(p) for p in parts if p is not None)
        widths = {i: (spare if p is None else len(p)) for i, p in zip(many, parts)}
    else:
        widths = {i: len(shape) - (len(tokens) - 1) for i in many}
    if not many and len(shape) != len(tokens):
        raise ShapeMismatch(f"{what}: expected rank {len(tokens)}, got shape {shape}")
    at = 0
    for i, t in enumerate(tokens):
        if t.many:
            w = widths[i]
            if w < 0 or at + w > len(shape):
                raise ShapeMismatch(f"{what}: rank {len(shape)} is too low for its pattern")
            got: Any = shape[at : at + w]
            at += w
            if t.broadcast:
                assert t.name is not None
                env[t.name] = broadcast(env[t.name], got) if t.name in env else tuple(got)
                continue
            if t.name is not None and t.name[0] == "_":
                continue
        else:
            if at >= len(shape):
                raise ShapeMismatch(f"{what}: rank {len(shape)} is too low for its pattern")
            got = shape[at]
            at += 1
            if t.name is not None and t.name[0] == "_":
                continue
        if t.name is not None and t.name not in env:
            env[t.name] = got
            continue
        want = env[t.name] if t.name is not None else evaluate(t.code, env)
        want = tuple(want) if t.many else want
        if want != got:
            raise ShapeMismatch(f"{what}: {t.text} is {got}, expected {want}")
    if at != len(shape):
        raise ShapeMismatch(f"{what}: rank {len(shape)} is too high for its pattern")
