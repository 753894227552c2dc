"""Plain programs -> coremltools' own, and the dialect that reads those back.

Part of the worker files ``coremltools_mil.py``, ``coremltools_nn.py`` and ``coreml.py``, which load it: it imports
NumPy, coremltools and the worker, nothing else of ours.  A plain program is what ``suites/mil/plain.py`` documents:

    b"MILP" | u32 header length | header JSON | arrays
    header = {"opset": "ios17", "inputs": [[name, dtype, shape, kind]], "consts": [[dtype, shape, offset]],
              "ops": [[op, {slot: ref}, [out names]]], "outputs": [name], "groups": [[name, ...]]}
    ref    = {"v": name} | {"c": const index} | {"l": [ref]} | {"p": literal} | {"b": block}
    block  = {"inputs": [name], "ops": [...], "outputs": [ref]}
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from opconform_worker import Unsupported


def _load_coremltools() -> Any:
    """Import coremltools without its eight lines about the missing native library."""
    fd = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        import coremltools
    finally:
        os.dup2(fd, 2)
        os.close(fd)
        os.close(null)
    import logging

    logging.getLogger("coremltools").setLevel(logging.ERROR)
    return coremltools


ct = _load_coremltools()

import sympy  # noqa: E402

gc.set_threshold(20_000, 20, 20)  # a program is thousands of objects in circles: fewer looks at those still in use
sympy.Symbol.__str__ = lambda self: self.name  # what SymPy prints for a symbol, without its printer's machinery

from coremltools.converters.mil import Builder as mb  # noqa: E402
from coremltools.converters.mil._deployment_compatibility import AvailableTarget  # noqa: E402
from coremltools.converters.mil.mil import (  # noqa: E402
    Function,
    Placeholder,
    Program,
    get_new_symbol,
    mil_list,
    types,
)

try:
    from coremltools.converters.mil.mil.program import StateTensorPlaceholder
except ImportError:  # before states
    StateTensorPlaceholder = None

_TO_BUILTIN = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "bool": "bool", "str": "str", "c64": "complex64"}
_SUB = {"i4", "u1", "u2", "u3", "u4", "u6"}


def builtin(name: str) -> Any:
    return getattr(types, _TO_BUILTIN.get(name) or ("uint" if name[0] == "u" else "int") + name[1:])


def ours(builtin: Any) -> Any:
    s = types.builtin_to_string(builtin)
    for ours, theirs in _TO_BUILTIN.items():
        if s == theirs or (s == "string" and ours == "str"):
            return ours
    return s.replace("uint", "u").replace("int", "i")


def unpack(data: bytes) -> tuple[Any, Any]:
    """(header, constant arrays) of a plain program."""
    if data[:4] != b"MILP":
        raise ValueError("not a plain MIL program")
    (n,) = struct.unpack_from("<I", data, 4)
    h = json.loads(data[8 : 8 + n].decode())
    base, consts = 8 + n, []
    for c in h["consts"]:
        name, shape = c[0], tuple(c[1])
        if name == "str":
            consts.append(np.array(c[2], dtype=object).reshape(shape))
            continue
        np_dtype = types.nptype_from_builtin(builtin(name))
        count = int(np.prod(shape, dtype=np.int64))
        plain = np.dtype(np_dtype)
        a = np.frombuffer(data, plain.str, count, base + c[2]).reshape(shape)
        # copies: coremltools writes into the constants that it is given
        consts.append(a.astype(np_dtype) if name in _SUB else a.copy())
    return h, consts


class Builder:
    """Calls mb.* for the ops of a header."""

    def __init__(self, h: dict[str, Any], consts: list[np.ndarray]) -> None:
        self.h, self.consts = h, [c.copy() for c in consts]  # coremltools writes into what a program is given
        self.made: dict[str, Any] = {}

    def ref(self, r: Any, env: Any) -> Any:
        if "v" in r:
            return env[r["v"]]
        if "c" in r:
            a = self.consts[r["c"]]
            if r["c"] in self.h.get("shared", ()):
                if r["c"] not in self.made:
                    self.made[r["c"]] = mb.const(val=a if a.ndim else a[()])
                return self.made[r["c"]]
            return a if a.ndim else a[()]
        if "l" in r:
            return tuple(self.ref(x, env) for x in r["l"])
        if "b" in r:
            return self.block(r["b"], env)
        if "s" in r:
            return mb.const(val=mil_list([np.int64(x) if isinstance(x, int) else x for x in r["s"]]))
        return r["p"]

    def block(self, b: Any, env: Any) -> Any:
        def fn(*args: Any) -> Any:
            local = dict(env)
            local.update(zip(b["inputs"], args))
            for op in b["ops"]:
                self.op(op, local)
            outs = [self.as_var(self.ref(o, local)) for o in b["outputs"]]
            return outs[0] if len(outs) == 1 else tuple(outs)

        return fn

    @staticmethod
    def as_var(v: Any) -> Any:
        return mb.const(val=v) if isinstance(v, (np.generic, np.ndarray, bool, int, float)) else v

    def op(self, op: Any, env: Any) -> None:
        name, args, outs = op
        kwargs = {k: self.ref(r, env) for k, r in args.items()}
        if name == "write_state":
            name = "coreml_update_state"
        if outs and outs[0] in self.h.get("names", ()):
            kwargs["name"] = self.h["names"][outs[0]]
        made = getattr(mb, name)(**kwargs)
        made = made if isinstance(made, (list, tuple)) else (made,)
        if len(made) != len(outs):
            raise ValueError(f"{name} gave {len(made)} outputs, expected {len(outs)}")
        env.update(zip(outs, made))


_REAL = {"complex_real", "complex_imag", "complex_abs", "complex_shape", "complex_irfft", "complex_irfftn"}


def split_complex(h: dict[str, Any], outputs: Any) -> tuple[dict[Any, Any], Any]:
    """Complex inputs (and with ``outputs`` results) as pairs of real ones: programs have no complex tensors.

    Returns the header and the names that were split."""
    names, inputs, head = [], [], []
    for i in h["inputs"]:
        if i[1] != "c64":
            inputs.append(i)
            continue
        names.append(i[0])
        inputs += [[i[0] + ".re", "f32", i[2], i[3]], [i[0] + ".im", "f32", i[2], i[3]]]
        parts = {"real_data": {"v": i[0] + ".re"}, "imag_data": {"v": i[0] + ".im"}}
        head.append(["complex", parts, [i[0]]])
    made = {o for op, _, outs in h["ops"] if op.startswith("complex") and op not in _REAL for o in outs}
    tail, outs = [], []
    for o in h["outputs"]:
        if outputs and o in made:
            tail += [
                ["complex_real", {"data": {"v": o}}, [o + ".re"]],
                ["complex_imag", {"data": {"v": o}}, [o + ".im"]],
            ]
            outs += [o + ".re", o + ".im"]
        else:
            outs.append(o)
    return dict(h, inputs=inputs, ops=head + h["ops"] + tail, outputs=outs), names


def target(h: dict[str, Any]) -> Any:
    return AvailableTarget[h["opset"].replace("ios", "iOS")]


def placeholders(h: dict[str, Any], symbols: Any = None, chosen: Any = None) -> Any:
    """Inputs of a function.  symbols: takes the extents of axes that become symbols, by symbol; chosen: (input, axis)
    of those, None for all."""
    out = {}
    made: dict = {}
    for name, dtype, shape, kind in h["inputs"]:
        if kind == "state":
            out[name] = StateTensorPlaceholder(tuple(shape), builtin(dtype), name=name)
            continue
        dims = []
        for axis, n in enumerate(shape):
            if isinstance(n, str):  # a symbol; all of one name are one
                if n not in made:
                    made[n] = get_new_symbol()
                dims.append(made[n])
                continue
            fixed = symbols is None or (chosen is not None and (name, axis) not in chosen)
            if fixed or n == 1:  # 1 stays: a symbol is taken to be none, which changes the meaning
                dims.append(n)
            else:
                whole = (name[:-3] if name[-3:] in (".re", ".im") else name, axis)  # two halves, one symbol
                s = made.get(whole)
                if s is None:
                    s = made[whole] = get_new_symbol()
                symbols[s] = n
                dims.append(s)
        out[name] = Placeholder(tuple(dims), builtin(dtype), name=name, allow_rank0_input=True)
    return out


def build(h: dict[str, Any], consts: list[np.ndarray], opset: str = "of the header", outputs: Any = None) -> Any:
    """A pymil Program with one function ``main``; raises what coremltools raises."""
    prog, b = Program(), Builder(h, consts)
    with Function(placeholders(h), opset_version=target(h) if opset == "of the header" else opset) as f:
        env = dict(f.inputs)
        for op in h["ops"]:
            b.op(op, env)
        outs = []
        for n in outputs if outputs is not None else h["outputs"]:
            v = env[n]
            outs.append(mb.identity(x=v) if n in f.inputs or v.op is None or v.op.op_type == "const" else v)
        f.set_outputs(outs)
    prog.add_function("main", f)
    return prog


@functools.lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8
def dialect(name: str) -> Any:
    """An installed dialect.  ``run_model`` interprets a whole model: (model bytes, {name: array}) -> list of outputs in
    order.  ``mil`` also has ``packed``: coremltools' own program -> plain program."""
    from importlib import metadata

    found, group = metadata.entry_points(), "opconform.dialects"
    points = found.select(group=group) if hasattr(found, "select") else found.get(group, ())
    for p in points:
        if p.name == name:
            return p.load()
    raise Unsupported(f"the dialect {name!r} is not installed in this environment")


@contextlib.contextmanager
def quietly() -> Iterator[Any]:
    """Progress bars and prints of the converters go nowhere."""
    old = sys.stdout, sys.stderr
    with open(os.devnull, "w") as null:
        sys.stdout = sys.stderr = null
        try:
            yield
        finally:
            sys.stdout, sys.stderr = old
