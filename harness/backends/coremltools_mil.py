"""coremltools on Linux: value inference, type inference, a round trip through the file, passes.

This file runs inside a worker, with NumPy and coremltools.  Models are plain programs (``coremltools_program.py``).
coremltools cannot run anything here: the dialect's interpreter, found by its entry point, executes what it made.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from importlib.util import find_spec
from typing import Any

import numpy as np
from opconform_worker import TypeOnly, Unsupported, from_raw, sibling

program = sibling("coremltools_program", __spec__)
mb, types = program.mb, program.types

from coremltools.converters.mil.mil import ListVar  # noqa: E402 - quietly imported before
from coremltools.converters.mil.mil.types.symbolic import any_variadic  # noqa: E402


def _shape_of(v: Any, values: Any = None) -> Any:
    """Static shape of a var, symbols replaced; None for an axis that stays unknown."""
    t = v.sym_type
    if not types.is_tensor(t):
        return []
    out: list[int | None] = []
    for d in t.get_shape():
        if values is not None and hasattr(d, "subs"):
            d = d.subs(values)
        try:
            out.append(int(d))
        except (TypeError, ValueError):
            out.append(None)
    return out


def np_type(dtype: str) -> Any:
    known = {"f16": "f2", "f32": "f4", "bool": "?", "c64": "c8"}
    return np.dtype(known.get(dtype) or dtype[0] + str(int(dtype[1:]) // 8))


# coremltools keeps a class of every tensor type (``types.type_tensor.memoize``): 10 to 15 KiB a model with symbols.
RECYCLE = 2000


class _Base:
    formats = ("mil",)
    packages = ("coremltools",)
    family = "coremltools"
    recycle = RECYCLE

    def version(self) -> str:
        return program.ct.__version__


class Fold(_Base):
    """Value inference: the ops run as constants, and the answer is the value that coremltools folds them to.

    coremltools may also fold a value although an operand is known at run time alone.  Such an element has to be right
    whatever the operand brings, so it takes the place of the answer's.  It is looked for with the extents of the inputs
    known, and with symbols for them."""

    name = "coremltools-fold"
    acc = {"f16": "f16"}  # NumPy computes fp16 in fp16

    def load(self, model: bytes, format: str) -> Any:
        h, consts = program.unpack(model)
        if any(i[3] == "state" for i in h["inputs"]):
            raise Unsupported("states do not fold")
        dtype = {i[0]: i[1] for i in h["inputs"]}
        for name, args, _ in h["ops"]:
            if name == "matmul":
                given = [r for r in map(args.get, ("x", "y")) if r]
                kinds = {dtype.get(r["v"]) if "v" in r else h["consts"][r["c"]][0] for r in given}
                if len(kinds - {None}) > 1:  # of the result of another op nothing is known here
                    raise Unsupported("mixed types need one constant operand, and folding makes both constant")
        known: tuple[dict[Any, int] | None, ...] = (None, {})  # which extents are
        early = [_early(h, consts, symbols) for symbols in known] if h["inputs"] else []
        return h, consts, early

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        h, consts, early = handle
        try:
            out = self._folded(h, consts, inputs)
        except Unsupported:
            if not early or not all(np.all(early[0].get(n, (0, False))[1]) for n in h["outputs"]):
                raise
            out = {}  # an op that does not fold, but for what it told before
        for known in early:
            for n, (value, mask) in known.items():
                whole = out.get(n)
                if not isinstance(whole, np.ndarray) or whole.shape != value.shape:
                    out[n] = value
                else:
                    out[n] = np.where(mask, value.astype(whole.dtype), whole)
        return out

    def _folded(self, h: dict[str, Any], consts: list[np.ndarray], inputs: dict[str, np.ndarray]) -> Any:
        b, out = program.Builder(h, consts), {}
        with program.Function({}, opset_version=program.target(h)):
            env = {n: mb.const(val=_scalar(inputs[n], d)) for n, d, _, _ in h["inputs"]}
            with np.errstate(all="ignore"):
                for op in h["ops"]:
                    b.op(op, env)
            for n in h["outputs"]:
                out[n] = self._value(env[n])
        return out

    @staticmethod
    def _value(v: Any) -> Any:
        val = v.val
        if val is None:
            op = v.op
            made = getattr(op, "materialized_val_inference", None)
            val = made() if made is not None and op.op_type.startswith(("constexpr_", "dequantize")) else None
            if val is None:  # or an operand has no value
                raise Unsupported(f"{op.op_type} has no value inference")
            if isinstance(val, (list, tuple)):
                val = val[op.outputs.index(v)]
        if isinstance(v, ListVar) or (not types.is_tensor(v.sym_type) and types.is_list(v.sym_type)):
            raise Unsupported("a list as result")
        name, val = program.ours(v.dtype), np.asarray(val)
        if not val.ndim and name not in ("str", "c64"):  # scalars are held as Python numbers
            val = val.astype(types.nptype_from_builtin(v.dtype))
        return from_raw(val, name) if name in ("i4", "u4", "u2") else val


def _early(h: dict[str, Any], consts: list[np.ndarray], symbols: Any) -> dict[str, Any]:
    """{output: (value, mask of the elements that are known)}, where inputs come at run time.  symbols: a dictionary for
    the extents of the inputs, which are symbols then; None where they are known."""
    if any(i[1].startswith("c") for i in h["inputs"]):
        return {}  # a function has no complex inputs
    try:
        b = program.Builder(h, consts)
        with program.Function(program.placeholders(h, symbols), opset_version=program.target(h)) as f:
            env = dict(f.inputs)
            with np.errstate(all="ignore"):
                for op in h["ops"]:
                    b.op(op, env)
            found = {n: _elements(env[n], symbols or {}) for n in h["outputs"] if n not in f.inputs}
    except Exception:  # type inference is judged by backends of its own
        return {}
    return {n: k for n, k in found.items() if k is not None}


def _elements(v: Any, symbols: Any) -> tuple[Any, Any] | None | None:
    """A value that is known in part: (array, mask), or None."""
    if isinstance(v, ListVar) or not (types.is_tensor(v.sym_type) or types.is_scalar(v.sym_type)):
        return None
    name = program.ours(v.dtype)
    if v.sym_val is None or name in ("str", "c64", "i4", "u4", "u2"):
        return None
    some = np.asarray(v.sym_val, object)
    value, mask = np.zeros(some.shape, np_type(name)), np.zeros(some.shape, bool)
    for at in np.ndindex(some.shape):
        x = some[at]
        if hasattr(x, "subs"):
            x = x.subs(symbols)
            if x.free_symbols:
                continue
            x = int(x) if x.is_integer else float(x)
        value[at], mask[at] = x, True
    return (value, mask) if mask.any() else None


def _scalar(a: np.ndarray, dtype: str) -> Any:
    a = np.array(a)  # a copy: coremltools writes into what it is given
    return a if a.ndim else a[()]


class Types(_Base):
    """Type inference with static shapes: only the shape and the dtype of an output are judged."""

    name = "coremltools-types"

    def load(self, model: bytes, format: str) -> Any:
        h, consts = program.unpack(model)
        h, _ = program.split_complex(h, False)
        return self._infer(h, consts, None)

    @staticmethod
    def _infer(h: dict[str, Any], consts: list[np.ndarray], symbols: Any, chosen: Any = None) -> Any:
        b = program.Builder(h, consts)
        places = program.placeholders(h, symbols, chosen)
        with program.Function(places, opset_version=program.target(h)) as f:
            env = dict(f.inputs)
            for op in h["ops"]:
                b.op(op, env)
        out = {}
        for n in h["outputs"]:
            t = env[n].sym_type
            if types.is_tensor(t) and any_variadic(t.get_shape()):
                out[n] = (None, program.ours(env[n].dtype))  # not even the rank is known
            elif types.is_tensor(t) or types.is_scalar(t):
                out[n] = (_shape_of(env[n], symbols), program.ours(env[n].dtype))
            else:
                out[n] = (None, None)  # a list or a dictionary
        return out

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        return {n: TypeOnly(dtype, shape) for n, (shape, dtype) in handle.items()}


class Symbolic(Types):
    """Type inference with symbols for the extents of the inputs, as far as the op allows.

    The inferred shape is an expression of the symbols.  With the real extents put in, it has to be the real shape.  An
    op may need to know an extent, and says so.  Then fewer are symbols: half of them, the other half, each alone.  What
    is left is a gap."""

    name = "coremltools-symbolic"

    def info(self) -> dict[str, Any]:
        # a rule about extents cannot be checked without them; in a program a node knows those that the others tell
        return {"validates": False, "leaves_to": Types.name}

    def load(self, model: bytes, format: str) -> Any:
        h, consts = program.unpack(model)
        h, _ = program.split_complex(h, False)
        axes = [(i[0], k) for i in h["inputs"] if i[3] != "state" for k, n in enumerate(i[2]) if n != 1]
        if not axes:
            raise Unsupported("no axis that could be a symbol")
        tries = [axes]
        if len(axes) > 1:
            tries += [axes[::2], axes[1::2]]
        if len(axes) > 2:
            tries += [[a] for a in axes[:4]]
        why = None
        for chosen in tries:
            symbols: dict[Any, int] = {}
            try:
                return self._infer(h, consts, symbols, set(chosen))
            except Exception as e:  # many ops need a known axis and say so, in words of their own
                why = why or e
        raise Unsupported(f"needs to know its axes: {type(why).__name__}: {why}")


class RoundTrip(_Base):
    """Writes the program as a file holds it and loads it back; our interpreter runs what came back.

    As in every conversion, a pass first takes ops over complex numbers apart.  Writing needs the native writer of
    weights, which a pure-Python wheel lacks (Linux on Arm)."""

    name = "coremltools-roundtrip"

    def info(self) -> dict[str, Any]:
        return {"leaves_to": Types.name}  # a program is built with the types that are inferred

    def __init__(self) -> None:
        if find_spec("coremltools.libmilstoragepython") is None:
            raise ModuleNotFoundError("this build of coremltools has no libmilstoragepython, and exports nothing")
        self.folder = tempfile.TemporaryDirectory()  # of the weights; one for all, since removing one takes a while

    def load(self, model: bytes, format: str) -> Any:
        from coremltools.converters.mil.backend.mil.load import MILProtoExporter
        from coremltools.converters.mil.frontend.milproto.load import load_mil_proto
        from coremltools.converters.mil.mil.passes.pass_registry import PASS_REGISTRY

        h, consts = program.unpack(model)
        if any(not i[2] for i in h["inputs"]):
            raise Unsupported("an ML program has no inputs of rank 0")
        mil = program.dialect("mil")
        whole = h["outputs"]
        complex_ops = any(op.startswith("complex") for op, _, _ in h["ops"])
        h, split = program.split_complex(h, True) if complex_ops else (h, [])
        prog = program.build(h, consts)
        if complex_ops:
            PASS_REGISTRY["common::lower_complex_dialect_ops"](prog)
        target = program.target(h)
        folder = self.folder.name
        for left in glob.glob(os.path.join(glob.escape(folder), "*")):
            shutil.rmtree(left) if os.path.isdir(left) else os.remove(left)
        spec = MILProtoExporter(prog, folder, int(target)).export()
        back = load_mil_proto(spec, int(target), folder)
        return mil.run_model, mil.packed(back), h["outputs"], whole, split

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        run, model, names, whole, split = handle
        for n in split:
            x = np.asarray(inputs[n])
            inputs = dict(inputs, **{n + ".re": x.real.copy(), n + ".im": x.imag.copy()})
            del inputs[n]
        got = dict(zip(names, run(model, inputs)))
        for n in whole:
            if n not in got:
                joined = np.empty(np.shape(got[n + ".re"]), np.complex64)
                joined.real, joined.imag = got[n + ".re"], got[n + ".im"]
                got[n] = joined
        return {n: got[n] for n in whole}


class Passes(_Base):
    """Runs graph passes over a program; our interpreter runs what they leave.

    The header of the program names them: "passes" is a pipeline or a list of passes.  ``coremltools_passes.py``
    describes the rest of it.  The output ``fired`` tells whether the last pass changed what it promises to change.  It
    is False where the header promises nothing ("fires": null)."""

    name = "coremltools-passes"
    formats = ("mil-passes",)
    path_kinds = ("changed", "as written")

    def __init__(self) -> None:
        self.passes = sibling("coremltools_passes", __spec__)

    def load(self, model: bytes, format: str) -> Any:
        run = program.dialect("mil").run_model
        after, fired, perms = self.apply(model)
        h, now = program.unpack(model)[0], program.unpack(after)[0]["inputs"]
        if len(now) != len(h["inputs"]):
            raise ValueError(f"the passes left {len(now)} of {len(h['inputs'])} inputs")
        ins = [(a[0], b[0], perm) for a, b, perm in zip(h["inputs"], now, perms)]
        return run, after, ins, h["outputs"], fired, h["fires"] is not None

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        run, model, ins, names, fired, promised = handle
        fed = {new: inputs[old] if perm is None else np.transpose(inputs[old], perm) for old, new, perm in ins}
        return dict(zip(names, run(model, fed)), fired=np.array(bool(fired and promised)))

    def paths(self, handle: Any) -> dict[str, str]:
        """Did the passes change what they promise to change?"""
        names, fired = handle[3], handle[4]
        return dict.fromkeys(names, "changed" if fired else "as written")

    def apply(self, model: bytes) -> tuple[Any, Any, Any]:
        """Run the passes that a plain program names over it.

        Returns the program afterwards, whether they did their part, and how each input now has to be permuted."""
        h, consts = program.unpack(model)
        missing = self.passes.unknown(h)
        if missing:
            raise Unsupported(f"this release has no pass {missing}")
        prog = program.build(h, consts)
        self.passes.prepare(prog, h, program.builtin)
        look, compare = self.passes.WATCHED[h.get("watch", "ops")]
        before = look(prog.functions["main"])
        with program.quietly():
            self.passes.run(prog, h)
        prog.validate()
        function = h.get("function", "main")
        if function not in prog.functions:
            function = "main"
        fired = compare(before, look(prog.functions[function]))
        return program.dialect("mil").packed(prog, function), fired, self.passes.moved(prog, h)
