"""Backends of the toy dialect with claims, which refuse or spoil whatever is beyond them."""

from __future__ import annotations

from typing import Any

import numpy as np

from suites.meta.toy_backends import Right


class Young(Right):
    """Takes f32 up to rank 2 without empty axes; second operands are constants."""

    name = "young"
    dtypes = ("f32",)
    unsupported_ops = ("Flip", "toy/Sum")
    limits = {"max_rank": 2, "empty": False, "static": True, "constant": ["*"]}
    validates = False

    def load(self, model: bytes, format: str) -> Any:
        nodes = super().load(model, format)
        for n in nodes:
            given = {**n["consts"], **n["ins"]}
            shapes = list(n["shapes"].values())
            right = (
                n["op"] in ("Add", "Max", "MatMul")
                and set(n["types"].values()) == {"f32"}
                and all(len(s) <= 2 and 0 not in s for s in shapes)
                and ("y" not in given or "y" in n["consts"])
            )
            if not right:
                raise ValueError(f"beyond its claims: {n}")
        return nodes


class Boastful(Young):
    """Claims less than is true of it: nothing is refused that was asked."""

    name = "boastful"
    limits = {"max_rank": 3, "empty": True}


class Narrow(Right):
    """Holds i64, here i32, in 16 bits; only claims what fits, as far as the toy dialect can say it."""

    name = "narrow"
    dtypes = ("f32",)
    absolute = {"Add": 0.5}

    def compute(self, op: str, attrs: dict[str, Any], a: dict[str, Any]) -> Any:
        out = super().compute(op, attrs, a)
        return out + np.float32(0.25) if op == "Add" and out.dtype == np.float32 else out


class Unclaimed(Right):
    """Claims no opset that there is."""

    name = "unclaimed"
    opsets = (7, 9)


class Malformed(Right):
    name = "malformed"
    limits = {"rank": 4}


class Silent(Young):
    """Has the limits of Young and claims nothing."""

    name = "silent"
    dtypes = None
    unsupported_ops = ()
    limits = {}
    validates = True


class Flushing(Right):
    """Flushes subnormals of f32 to zero."""

    name = "flushing"

    def compute(self, op: str, attrs: dict[str, Any], a: dict[str, Any]) -> Any:
        out = super().compute(op, attrs, a)
        if out.dtype == np.float32:
            out = np.where(np.abs(out) < np.finfo(np.float32).tiny, np.float32(0), out)
        return out


class NarrowSums(Right):
    """Keeps the sums of a product of f32 in f16."""

    name = "narrow-sums"

    def compute(self, op: str, attrs: dict[str, Any], a: dict[str, Any]) -> Any:
        if op != "MatMul":
            return super().compute(op, attrs, a)
        total = np.zeros((a["x"].shape[0], a["y"].shape[1]), np.float16)
        for k in range(a["x"].shape[1]):
            total += np.outer(a["x"][:, k], a["y"][k]).astype(np.float16)
        return total.astype(np.float32)
