"""What the annotations of a meaning say, and what a wrong one says of itself."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest

from harness.declare import (
    Array,
    Axes,
    Choice,
    Each,
    Flag,
    Float,
    Int,
    Ints,
    Num,
    Real,
    Semantics,
    Variadic,
    params,
    semantics,
)
from harness.declare.annotations import Tensor


def declared(annotations: dict[str, Any], default: Any = None) -> Semantics:
    def f(x, *, p=default):
        return x

    f.__annotations__ = annotations
    return semantics(source="none")(f)


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Float[Array, "n c *s"], Tensor("float", "n c *s")),
        (Int[Array, "n"] | None, Tensor("int", "n", optional=True)),
        (Variadic[Num[Array, "*#d"]], Tensor("num", "*#d", variadic=True)),
    ],
)
def test_a_tensor_is_its_kind_and_its_pattern(annotation: Any, said: Tensor) -> None:
    assert declared({"x": annotation, "p": Flag, "return": Array}).tensors == {"x": said}


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Flag, params.Flag()),
        (Ints | None, params.Ints()),
        (Axes[Ints, "d"], params.Axes("d")),
        (Axes[Ints, "d"] | None, params.Axes("d")),
        (Each[Ints, "d", 1, 3], params.Each("d", 1, 3)),
        (Choice[str, "up", "down"], params.Choice("up", "down")),
        (Choice[int, 1, 2], params.Choice(1, 2)),
        (Choice[str, ("up", "down")], params.Choice("up", "down")),
        (Choice[str, {"up": 1, "down": 2}], params.Choice("up", "down")),
        (Annotated[float, params.Real(0.0, 2.0, also=(1.0,))], params.Real(0.0, 2.0, (1.0,))),
        (Annotated[float, params.Real(0.0, 2.0)] | None, params.Real(0.0, 2.0)),
        (Real, params.Real()),
    ],
)
def test_a_parameter_is_its_kind_and_its_domain(annotation: Any, said: params.Param) -> None:
    s = declared({"x": Num[Array, "*d"], "p": annotation, "return": Array})
    assert type(s.params["p"]) is type(said)
    assert vars(s.params["p"]) == vars(said)
    assert s.defaults == {"p": None}


@pytest.mark.parametrize(
    ("returns", "patterns"),
    [
        (Num[Array, "*d"], ["*d"]),
        (tuple[Num[Array, "*d"], Int[Array, "n"]], ["*d", "n"]),
        (Array, None),
        (tuple[Array, Array], None),
        (tuple[Array, ...], None),
        (list[Array], None),
    ],
)
def test_results_without_a_pattern_have_the_type_of_the_body(returns: Any, patterns: list[str] | None) -> None:
    result = declared({"x": Num[Array, "*d"], "p": Flag, "return": returns}).result
    assert (None if result is None else [t.pattern for t in result]) == patterns


@pytest.mark.parametrize(
    ("kind", "item", "words"),
    [
        (Float, "n c", r"expected Float\[Array, \"pattern\"\], got 'n c'"),
        (Float, (np.float32, "n"), r"expected Float\[Array"),
        (Float, (Array, 3), r"expected Float\[Array"),
        (Axes, "d", r"expected Axes\[type, domain\], got 'd'"),
        (Each, ("d", 1, 3), r"expected Each\[type, domain\]"),
        (Choice, ("up", "down"), r"expected Choice\[type, domain\]"),
    ],
)
def test_an_annotation_names_the_type_first(kind: Any, item: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        kind[item]


def test_an_ordinary_type_is_no_annotation() -> None:
    with pytest.raises(TypeError, match="p: expected a tensor or parameter annotation"):
        declared({"x": Num[Array, "*d"], "p": float, "return": Array})
