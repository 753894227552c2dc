"""coremltools on Linux: value inference, type inference, a round trip through the file, lowering, passes.

This file runs inside a worker: it imports NumPy and coremltools, nothing of ours.  Models come as format
``mil``, the plain description of a pymil program that ``suites/mil/plain.py`` documents:

    b"MILP" | u32 header length | header JSON | arrays
    header = {"opset": "ios17", "inputs": [[name, dtype, shape, kind]], "consts": [[dtype, shape, offset]],
              "ops": [[op, {slot: ref}, [out names]]], "outputs": [name], "groups": [[name, ...]]}
    ref    = {"v": name} | {"c": const index} | {"l": [ref]} | {"p": literal} | {"b": block}
    block  = {"inputs": [name], "ops": [...], "outputs": [ref]}

The executing ways hand the program that coremltools made to the interpreter of the dialect (``mil``, ``nn``),
found by its entry point: coremltools itself cannot run anything here.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import glob
import importlib.util
import json
import os
import re
import shutil
import struct
import sys
import tempfile

import numpy as np
from opconform_worker import TypeOnly, Unsupported, from_raw


def _load_coremltools():
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
    ListVar,
    Placeholder,
    Program,
    get_new_symbol,
    mil_list,
    types,
)
from coremltools.converters.mil.mil.types.symbolic import any_variadic  # noqa: E402

try:
    from coremltools.converters.mil.mil.program import StateTensorPlaceholder
except ImportError:  # before states
    StateTensorPlaceholder = None

_TO_BUILTIN = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "bool": "bool", "str": "str", "c64": "complex64"}
_SUB = {"i4", "u1", "u2", "u3", "u4", "u6"}


def _builtin(name):
    return getattr(types, _TO_BUILTIN.get(name) or ("uint" if name[0] == "u" else "int") + name[1:])


def _ours(builtin):
    s = types.builtin_to_string(builtin)
    for ours, theirs in _TO_BUILTIN.items():
        if s == theirs or (s == "string" and ours == "str"):
            return ours
    return s.replace("uint", "u").replace("int", "i")


def unpack(data):
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
        np_dtype = types.nptype_from_builtin(_builtin(name))
        count = int(np.prod(shape, dtype=np.int64))
        plain = np.dtype(np_dtype)
        a = np.frombuffer(data, plain.str, count, base + c[2]).reshape(shape)
        # copies: coremltools writes into the constants that it is given
        consts.append(a.astype(np_dtype) if name in _SUB else a.copy())
    return h, consts


def pack(h, arrays):
    """Inverse of ``unpack``; arrays: (our dtype name, array)."""
    blob, consts = bytearray(), []
    for name, a in arrays:
        if name == "str":
            consts.append(["str", list(a.shape), [str(x) for x in a.ravel()]])
            continue
        consts.append([name, list(a.shape), len(blob)])
        blob += np.ascontiguousarray(a).tobytes()
        blob += b"\0" * (-len(blob) % 8)
    head = json.dumps(dict(h, consts=consts), separators=(",", ":")).encode()
    head += b" " * (-(len(head)) % 8)
    return b"MILP" + struct.pack("<I", len(head)) + head + bytes(blob)


class _Builder:
    """Calls mb.* for the ops of a header."""

    def __init__(self, h, consts):
        self.h, self.consts, self.made = h, consts, {}

    def ref(self, r, env):
        if "v" in r:
            return env[r["v"]]
        if "c" in r:
            a = self.consts[r["c"]]
            if r["c"] in self.h.get("shared", ()):
                if r["c"] not in self.made:
                    self.made[r["c"]] = mb.const(val=a)
                return self.made[r["c"]]
            return a if a.ndim else a[()]
        if "l" in r:
            return tuple(self.ref(x, env) for x in r["l"])
        if "b" in r:
            return self.block(r["b"], env)
        if "s" in r:
            return mb.const(val=mil_list([np.int64(x) if isinstance(x, int) else x for x in r["s"]]))
        return r["p"]

    def block(self, b, env):
        def fn(*args):
            local = dict(env)
            local.update(zip(b["inputs"], args))
            for op in b["ops"]:
                self.op(op, local)
            outs = [self.as_var(self.ref(o, local)) for o in b["outputs"]]
            return outs[0] if len(outs) == 1 else tuple(outs)

        return fn

    @staticmethod
    def as_var(v):
        return mb.const(val=v) if isinstance(v, (np.generic, np.ndarray, bool, int, float)) else v

    def op(self, op, env):
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


def split_complex(h, outputs):
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


def _target(h):
    return AvailableTarget[h["opset"].replace("ios", "iOS")]


def _placeholders(h, symbols=None, chosen=None):
    """Inputs of a function.  symbols: takes the extents of axes that become symbols, by symbol; chosen: (input, axis)
    of those, None for all."""
    out = {}
    made: dict = {}
    for name, dtype, shape, kind in h["inputs"]:
        if kind == "state":
            out[name] = StateTensorPlaceholder(tuple(shape), _builtin(dtype), name=name)
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
        out[name] = Placeholder(tuple(dims), _builtin(dtype), name=name, allow_rank0_input=True)
    return out


def build(h, consts, opset="of the header", outputs=None):
    """A pymil Program with one function ``main``; raises what coremltools raises."""
    prog, b = Program(), _Builder(h, consts)
    with Function(_placeholders(h), opset_version=_target(h) if opset == "of the header" else opset) as f:
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


def read(prog, function="main"):
    """(header, [(dtype, array)]) of a pymil program: what ``build`` takes."""
    f = prog.functions[function]
    consts, names, taken = [], {}, set()

    def name(v):
        if id(v) not in names:
            names[id(v)] = v.name if v.name not in taken else f"{v.name}.{len(names)}"
            taken.add(names[id(v)])
        return names[id(v)]

    def literal(v):
        val = v.val if getattr(v, "op", None) is None or v.op.op_type != "const" else v.op.outputs[0].val
        if isinstance(val, (str, bytes)):
            consts.append(("str", np.array(val, dtype=object)))
        elif isinstance(v, ListVar):
            return {"s": [x.item() if isinstance(x, np.generic) else x for x in getattr(val, "ls", val)]}
        else:
            consts.append((_ours(v.dtype), np.asarray(val)))
        return {"c": len(consts) - 1}

    def ref(v):
        if isinstance(v, (list, tuple)):
            return {"l": [ref(x) for x in v]}
        if getattr(v, "op", None) is not None and v.op.op_type == "const":
            return literal(v)
        return {"v": name(v)}

    def one(op):
        args = {}
        for slot, v in op.inputs.items():
            if v is None or slot.startswith("_"):
                continue
            args[slot] = ref(v)
        if op.blocks:
            slots = {"cond": ("_true_fn", "_false_fn"), "while_loop": ("_cond", "_body")}[op.op_type]
            for slot, blk in zip(slots, op.blocks):
                args[slot] = {"b": {"inputs": [name(v) for v in blk.inputs],
                                    "ops": [one(o) for o in blk.operations if o.op_type != "const"],
                                    "outputs": [ref(v) for v in blk.outputs]}}  # fmt: skip
        return [op.op_type, args, [name(v) for v in op.outputs]]

    inputs = []
    for n, v in f.inputs.items():
        names[id(v)] = n
        taken.add(n)
        state = types.is_state(v.sym_type)
        t = v.sym_type.wrapped_type() if state else v.sym_type
        tensor = types.is_tensor(t)
        dims = t.get_shape() if tensor else ()
        shape = [int(d) if isinstance(d, (int, np.integer)) else str(d) for d in dims]
        inputs.append([n, _ours(t.get_primitive() if tensor else t), shape, "state" if state else "tensor"])
    ops = [one(op) for op in f.operations if op.op_type != "const"]
    outs = []
    for i, v in enumerate(f.outputs):
        if getattr(v, "op", None) is not None and v.op.op_type == "const":
            ops.append(["identity", {"x": literal(v)}, [f"out.const.{i}"]])
            outs.append(f"out.const.{i}")
        else:
            outs.append(name(v))
    version = f.opset_version or AvailableTarget.iOS15
    h = {"opset": version.name.replace("iOS", "ios"), "inputs": inputs, "ops": ops, "outputs": outs}
    return h, consts


@functools.lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8
def interpreter(name):
    """The whole-model interpreter of a dialect: (model bytes, {name: array}) -> list of outputs in order."""
    from importlib import metadata

    found, group = metadata.entry_points(), "opconform.dialects"
    points = found.select(group=group) if hasattr(found, "select") else found.get(group, ())
    for p in points:
        if p.name == name:
            return p.load().run_model
    raise Unsupported(f"the dialect {name!r} is not installed in this environment")


def _shape_of(v, values=None):
    """Static shape of a var, symbols replaced; None for an axis that stays unknown."""
    t = v.sym_type
    if not types.is_tensor(t):
        return []
    out = []
    for d in t.get_shape():
        if values is not None and hasattr(d, "subs"):
            d = d.subs(values)
        try:
            out.append(int(d))
        except (TypeError, ValueError):
            out.append(None)
    return out


def _np(dtype):
    known = {"f16": "f2", "f32": "f4", "bool": "?", "c64": "c8"}
    return np.dtype(known.get(dtype) or dtype[0] + str(int(dtype[1:]) // 8))


class _Base:
    formats = ("mil",)

    def version(self):
        return ct.__version__


class Fold(_Base):
    """Value inference: the ops run as constants and the value that coremltools folds them to is the answer."""

    name = "coremltools-fold"
    acc = {"f16": "f16"}  # NumPy computes fp16 in fp16

    def load(self, model, format):
        h, consts = unpack(model)
        if any(i[3] == "state" for i in h["inputs"]):
            raise Unsupported("states do not fold")
        dtype = {i[0]: i[1] for i in h["inputs"]}
        for name, args, _ in h["ops"]:
            if name == "matmul":
                kinds = {dtype.get(r.get("v")) or h["consts"][r["c"]][0] for r in (args["x"], args["y"]) if r}
                if len(kinds) > 1:
                    raise Unsupported("mixed types need one constant operand, and folding makes both constant")
        return h, consts

    def run(self, handle, inputs):
        h, consts = handle
        b, out = _Builder(h, consts), {}
        with Function({}, opset_version=_target(h)):
            env = {n: mb.const(val=_scalar(inputs[n], d)) for n, d, _, _ in h["inputs"]}
            with np.errstate(all="ignore"):
                for op in h["ops"]:
                    b.op(op, env)
            for n in h["outputs"]:
                out[n] = self._value(env[n])
        return out

    @staticmethod
    def _value(v):
        val = v.val
        if val is None:
            op = v.op
            made = getattr(op, "materialized_val_inference", None)
            if made is None or not op.op_type.startswith(("constexpr_", "dequantize")):
                raise Unsupported(f"{op.op_type} has no value inference")
            val = made()
            if isinstance(val, (list, tuple)):
                val = val[op.outputs.index(v)]
        if isinstance(v, ListVar) or (not types.is_tensor(v.sym_type) and types.is_list(v.sym_type)):
            raise Unsupported("a list as result")
        name, val = _ours(v.dtype), np.asarray(val)
        if not val.ndim and name not in ("str", "c64"):  # scalars are held as Python numbers
            val = val.astype(types.nptype_from_builtin(v.dtype))
        return from_raw(val, name) if name in ("i4", "u4", "u2") else val


def _scalar(a, dtype):
    a = np.array(a)  # a copy: coremltools writes into what it is given
    return a if a.ndim else a[()]


class Types(_Base):
    """Type inference with static shapes: only the shape and the dtype of an output are judged."""

    name = "coremltools-types"

    def load(self, model, format):
        h, consts = unpack(model)
        h, _ = split_complex(h, False)
        return self._infer(h, consts, None)

    @staticmethod
    def _infer(h, consts, symbols, chosen=None):
        b = _Builder(h, consts)
        places = _placeholders(h, symbols, chosen)
        with Function(places, opset_version=_target(h)) as f:
            env = dict(f.inputs)
            for op in h["ops"]:
                b.op(op, env)
        out = {}
        for n in h["outputs"]:
            t = env[n].sym_type
            if types.is_tensor(t) and any_variadic(t.get_shape()):
                out[n] = (None, _ours(env[n].dtype))  # not even the rank is known
            elif types.is_tensor(t) or types.is_scalar(t):
                out[n] = (_shape_of(env[n], symbols), _ours(env[n].dtype))
            else:
                out[n] = (None, None)  # a list or a dictionary
        return out

    def run(self, handle, inputs):
        return {n: TypeOnly(dtype, shape) for n, (shape, dtype) in handle.items()}


class Symbolic(Types):
    """Type inference with symbolic axes: every axis of the inputs, or the axes that the op lets be.

    What is inferred is an expression over the symbols; with the real extents put in, it has to give the real shape.
    Where many axes cannot be symbols (an op may need to know one, and says so) fewer are tried: half of them, the
    other half, each alone.  What is left then is a gap."""

    name = "coremltools-symbolic"

    def info(self):
        return {"validates": False}  # a rule about extents cannot be checked without them

    def load(self, model, format):
        h, consts = unpack(model)
        h, _ = split_complex(h, False)
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
            symbols = {}
            try:
                return self._infer(h, consts, symbols, set(chosen))
            except Exception as e:  # many ops need a known axis and say so, in words of their own
                why = why or e
        raise Unsupported(f"needs to know its axes: {type(why).__name__}: {why}")


class RoundTrip(_Base):
    """Exported to the file's program proto, loaded back, and what came back is executed by our interpreter.

    Ops over complex numbers go through the pass that takes them apart first, as every conversion does."""

    name = "coremltools-roundtrip"

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()  # of the weights; one for all, since removing one takes a while

    def load(self, model, format):
        from coremltools.converters.mil.backend.mil.load import MILProtoExporter
        from coremltools.converters.mil.frontend.milproto.load import load_mil_proto
        from coremltools.converters.mil.mil.passes.pass_registry import PASS_REGISTRY

        h, consts = unpack(model)
        if any(not i[2] for i in h["inputs"]):
            raise Unsupported("an ML program has no inputs of rank 0")
        run = interpreter("mil")
        whole = h["outputs"]
        complex_ops = any(op.startswith("complex") for op, _, _ in h["ops"])
        h, split = split_complex(h, True) if complex_ops else (h, [])
        prog = build(h, consts)
        if complex_ops:
            PASS_REGISTRY["common::lower_complex_dialect_ops"](prog)
        target = _target(h)
        folder = self.folder.name
        for left in glob.glob(os.path.join(glob.escape(folder), "*")):
            shutil.rmtree(left) if os.path.isdir(left) else os.remove(left)
        spec = MILProtoExporter(prog, folder, int(target)).export()
        back = load_mil_proto(spec, int(target), folder)
        bh, bc = read(back)
        return run, pack(bh, bc), h["outputs"], whole, split

    def run(self, handle, inputs):
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


_NOT_IN_NN = re.compile(
    r"not supported in 'neuralnetwork|doesn't support dynamic|Unsupported mode for Pad|greater than 1"
)


class NeuralNetwork(_Base):
    """Lowered to a NeuralNetwork spec, which our NeuralNetwork interpreter executes."""

    name = "coremltools-nn"

    def load(self, model, format):
        from coremltools.converters.mil.backend.nn.load import load as lower
        from coremltools.converters.mil.mil.passes.pass_pipeline import PassPipeline, PassPipelineManager

        h, consts = unpack(model)
        if h["opset"] != "ios15":
            raise Unsupported("the NeuralNetwork back end takes the ops of iOS 15 and before")
        if any(not i[2] for i in h["inputs"]):
            raise Unsupported("a neural network has no inputs of rank 0")
        if not h["inputs"]:
            raise Unsupported("a neural network has inputs")
        if any(0 in i[2] for i in h["inputs"]):
            raise Unsupported("a neural network has no empty inputs")
        for c in consts:
            _f32_holds(c)
        if any(i[1] not in ("f32", "i32", "bool") for i in h["inputs"]):
            raise Unsupported("a neural network computes in f32")
        run = interpreter("nn")
        try:
            prog = build(h, consts, opset=AvailableTarget.iOS14)
        except ValueError as e:
            if "No available version" not in str(e):
                raise
            raise Unsupported("the op is newer than neural networks") from None
        wants = [(_ours(v.dtype), tuple(v.shape) == ()) for v in prog.functions["main"].outputs]
        prog.functions["main"].input_types = []
        try:
            with _quiet():
                PassPipelineManager.apply_pipeline(prog, PassPipeline.get_pipeline("backend_neuralnetwork"))
                spec = lower(prog)
        except Exception as e:
            if isinstance(e, NotImplementedError) or _NOT_IN_NN.search(str(e)):
                raise Unsupported(str(e) or "not implemented in the lowering to a neural network") from None
            raise
        names = [o.name for o in spec.description.output]
        return run, spec.SerializeToString(), names, list(zip(h["outputs"], wants))

    def run(self, handle, inputs):
        run, model, names, wants = handle
        for v in inputs.values():
            _f32_holds(v)
        floats = {k: np.asarray(v, np.float32) for k, v in inputs.items()}
        got = dict(zip(names, run(model, floats)))
        out = {}
        for (n, (dtype, scalar)), theirs in zip(wants, names):
            a = np.asarray(got[theirs])
            if dtype == "i32":
                _f32_holds(a, integers=True)
            a = a.astype(_np(dtype)) if dtype != "f32" else np.asarray(a, np.float32)
            out[n] = a.reshape(()) if scalar and a.size == 1 else a  # it has no rank 0
        return out


def _f32_holds(a, integers=False):
    """Neural networks carry integers in f32, which is exact up to 2**24."""
    a = np.asarray(a)
    if (integers or a.dtype.kind in "iu") and a.size and np.abs(a.astype(np.float64)).max() > 2**24:
        raise Unsupported("a neural network carries integers in f32")


@contextlib.contextmanager
def _quiet():
    """Progress bars and prints of the converters go nowhere."""
    old = sys.stdout, sys.stderr
    with open(os.devnull, "w") as null:
        sys.stdout = sys.stderr = null
        try:
            yield
        finally:
            sys.stdout, sys.stderr = old


def _sibling(name):
    """A module of this folder, also where this folder is no package (inside a worker)."""
    if __name__.startswith("harness."):
        return importlib.import_module("harness.backends." + name)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    spec = importlib.util.spec_from_file_location("opconform_" + name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


class Passes(_Base):
    """Graph passes: the header's "passes" (a pipeline name or a list of pass names) run over the program, and what
    they leave is executed by our interpreter.  ``fired`` beside the outputs tells whether the last of them changed
    what it promises to change; the rest of the header stands in ``coremltools_passes.py``."""

    name = "coremltools-passes"
    formats = ("mil-passes",)

    def __init__(self):
        self.passes = _sibling("coremltools_passes")

    def load(self, model, format):
        run = interpreter("mil")
        after, fired, perms = self.apply(model)
        h, now = unpack(model)[0], unpack(after)[0]["inputs"]
        if len(now) != len(h["inputs"]):
            raise ValueError(f"the passes left {len(now)} of {len(h['inputs'])} inputs")
        ins = [(a[0], b[0], perm) for a, b, perm in zip(h["inputs"], now, perms)]
        return run, after, ins, h["outputs"], fired

    def run(self, handle, inputs):
        run, model, ins, names, fired = handle
        fed = {new: inputs[old] if perm is None else np.transpose(inputs[old], perm) for old, new, perm in ins}
        return dict(zip(names, run(model, fed)), fired=np.array(fired))

    def apply(self, model):
        """Run the passes that a plain program names over it.

        Returns the program afterwards, whether they did their part, and how each input now has to be permuted."""
        h, consts = unpack(model)
        missing = self.passes.unknown(h)
        if missing:
            raise Unsupported(f"this release has no pass {missing}")
        prog = build(h, consts)
        self.passes.prepare(prog, h, _builtin)
        look, compare = self.passes.WATCHED[h.get("watch", "ops")]
        before = look(prog.functions["main"])
        with _quiet():
            self.passes.run(prog, h)
        prog.validate()
        function = h.get("function", "main")
        if function not in prog.functions:
            function = "main"
        fired = compare(before, look(prog.functions[function]))
        return pack(*read(prog, function)), fired, self.passes.moved(prog, h)
