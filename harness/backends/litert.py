"""LiteRT (``ai-edge-litert``, or ``tflite-runtime`` in an environment of its own): reference kernels, optimised
kernels, XNNPACK.

Each model has one interpreter, which runs many sets of values.  An answer of XNNPACK counts only where the delegate has
taken the nodes that compute the outputs.  Everything else is unsupported, since the optimised kernels would answer
instead.  Uninitialised memory shows, because workers fill it with a pattern (``harness.workers.unwritten``).
"""

from __future__ import annotations

import re
import struct
from importlib.util import find_spec
from typing import Any

import numpy as np
from opconform_worker import Backend, Unsupported, dtype_name, from_raw, raw

try:
    from ai_edge_litert import interpreter as _i

    PACKAGE = "ai-edge-litert"
except ImportError:
    from tflite_runtime import interpreter as _i

    PACKAGE = "tflite-runtime"

# TensorType numbers of the schema whose NumPy form in the Python wrapper does not tell the type.
STRING, RESOURCE, VARIANT, BFLOAT16 = 5, 13, 14, 18
_SMALL = {17: "i4", 19: "i2", 20: "u4", 21: "f8e4m3fn", 22: "f8e5m2"}
_STATEFUL = {
    "VAR_HANDLE",
    "READ_VARIABLE",
    "ASSIGN_VARIABLE",
    "CALL_ONCE",
    "HASHTABLE",
    "HASHTABLE_IMPORT",
    "HASHTABLE_FIND",
    "HASHTABLE_SIZE",
}
_GAPS = re.compile(
    r"Didn't find op for builtin opcode|out of range|not (currently |yet )?(supported|implemented)"
    r"|unsupported|unimplemented|only (supports?|float|int|uint)|does not support|Unresolved custom op"
    r"|type == kTfLite\w+|Got value of type NOTYPE"
    r"|but expected type (INT4|BFLOAT16)"  # wrappers of older releases take no such arrays
    r"|\((NOTYPE|BOOL|STRING|U?INT\d+|B?FLOAT\d+\w*|COMPLEX\d+) != [A-Z0-9_]+\)",
    re.IGNORECASE,
)
XNNPACK, BUILT_IN = "XNNPACK", "built-in kernel"  # what computes a node
_CLAIM = re.compile(r"Type (\w+) \(\d+\)|type \w+ is not")


_I32, _U32, _U16 = (struct.Struct(f).unpack_from for f in ("<i", "<I", "<H"))
_FIELDS = struct.Struct("<6H").unpack_from  # sizes of vtable and table, then the offsets of four fields


# How a repro.py runs its MODEL, with OPTIONS, the keywords that the backend is created with.
SCRIPT = """
RESOLVERS = {"ref": "BUILTIN_REF", "opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "xnnpack": "BUILTIN"}


def run(runs):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = getattr(OpResolverType, RESOLVERS[OPTIONS.get("kernels", "ref")])
    it = Interpreter(str(MODEL), experimental_op_resolver_type=resolver, num_threads=1)
    it.allocate_tensors()
    for feeds in runs:
        given = [d for d in it.get_input_details() if d["name"] in feeds]
        for d in given:
            if tuple(d["shape"]) != feeds[d["name"]].shape:
                it.resize_tensor_input(d["index"], feeds[d["name"]].shape)
        it.reset_all_variables()
        it.allocate_tensors()
        for d in given:
            a = feeds[d["name"]]
            it.set_tensor(d["index"], a.astype(np.int8) if a.dtype.name in ("int4", "int2") else a)
        it.invoke()
    by_name = {d["name"]: d["index"] for d in it.get_output_details()}
    return [it.get_tensor(by_name[n]) for n in OUTPUTS]
"""


class LiteRt(Backend):
    """kernels: "ref", "opt" or "xnnpack".  formats: TFLite."""

    formats = ("tflite",)
    family = "litert"
    packages = ("ai-edge-litert", "tflite-runtime")
    script = SCRIPT
    pack = 16  # an interpreter costs as much as a dozen small ops
    paths_every = 1  # the nodes are known anyway

    def __init__(self, kernels: str = "opt", name: str = "litert-opt") -> None:
        self.name = name
        self.kernels = kernels
        self.path_kinds = (XNNPACK,) if kernels == "xnnpack" else (BUILT_IN,)
        if kernels == "xnnpack":
            self.pack = 1  # the delegate compiles a graph as a whole: what is wrong with one op shows at others
            self.flushes = ("f32",)  # its thread pool runs with denormals disabled, on inputs and results
        r = _i.OpResolverType
        self.resolver = {
            "ref": r.BUILTIN_REF,
            "opt": r.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            "xnnpack": r.BUILTIN,
        }[kernels]

    def version(self) -> str:
        from importlib import metadata

        version = metadata.version(PACKAGE)
        return version if PACKAGE == "ai-edge-litert" else f"{PACKAGE} {version}"

    def info(self) -> dict[str, Any]:
        return {"package": PACKAGE, **({"leaves_to": "litert-opt"} if self.kernels == "xnnpack" else {})}

    def load(self, model: bytes, format: str) -> Any:
        ins, outs = io_tensors(model)
        if any(t.type in (RESOURCE, VARIANT) for t in [*ins.values(), *outs.values()]):
            raise Unsupported("resource and variant tensors cannot be read")
        if any(t.type == BFLOAT16 for t in [*ins.values(), *outs.values()]) and find_spec("ml_dtypes") is None:
            raise Unsupported("bfloat16 cannot be read without ml_dtypes beside LiteRT")
        return _Loaded(model, ins, outs, self._make(model))

    def _make(self, model: bytes) -> Any:
        try:
            return _i.Interpreter(model_content=model, experimental_op_resolver_type=self.resolver, num_threads=1)
        except (ValueError, RuntimeError) as e:
            raise _sorted(e) from None

    def run(self, handle: Any, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        h = handle
        try:
            if h.shapes is None or h.stateful:
                if h.shapes is not None:
                    h.interpreter = self._make(h.model)
                self._allocate(h, inputs)
                nodes = node_names(h.interpreter)
                h.stateful = bool(_STATEFUL.intersection(nodes))
                self._look_for_delegate(h, nodes)
            else:
                h.interpreter.reset_all_variables()
                if any(h.shapes.get(n) != v.shape for n, v in inputs.items()):
                    self._allocate(h, inputs)
                    self._look_for_delegate(h)
            if h.undelegated:
                raise Unsupported(h.undelegated)
            for n, v in inputs.items():
                t = h.ins.get(n)
                if t is not None:
                    h.interpreter.set_tensor(t.index, to_lite(v, t.type))
            h.interpreter.invoke()
        except (ValueError, RuntimeError) as e:
            raise _sorted(e) from None
        return {n: self._output(h.interpreter, t) for n, t in h.outs.items()}

    def _allocate(self, h: _Loaded, inputs: dict[str, np.ndarray]) -> None:
        for n, t in h.ins.items():
            v = inputs.get(n)
            if v is not None and (h.shapes[n] if h.shapes else t.shape) != v.shape:
                h.interpreter.resize_tensor_input(t.index, list(v.shape))
        h.interpreter.allocate_tensors()
        h.shapes = {n: v.shape for n, v in inputs.items()}

    def _look_for_delegate(self, h: _Loaded, nodes: Any = None) -> None:
        """Notes why the model, as it is allocated now, is not one that XNNPACK computes: each of its runs is refused
        then, also those after the first."""
        if self.kernels == "xnnpack":
            nodes = node_names(h.interpreter) if nodes is None else nodes
            h.taken = delegated(h, nodes)
            missed = [n for n, t in h.outs.items() if t.index not in h.taken]
            if missed and h.taken and bordering(h, nodes):
                missed = []  # a program of which it computes a part
            h.undelegated = f"not delegated: XNNPACK did not take what computes {missed[0]}" if missed else ""

    def paths(self, handle: Any) -> dict[str, Any]:
        return {n: XNNPACK if t.index in handle.taken else BUILT_IN for n, t in handle.outs.items()}

    def _output(self, it: Any, t: Any) -> Any:
        try:
            v = it.get_tensor(t.index)
        except ValueError as e:
            if "Invalid tensor size" not in str(e):
                raise
            # Empty dynamic outputs cannot be read; their details know the shape.
            now = next(d for d in it.get_output_details() if d["index"] == t.index)
            v = np.zeros(tuple(now["shape"]), now["dtype"])
        if t.type in _SMALL:
            name = _SMALL[t.type]
            mask = {"i4": 15, "u4": 15, "i2": 3}.get(name, 255)
            return from_raw(v.view(np.uint8) & np.uint8(mask), name)
        return v


class CrossDialect(LiteRt):
    """Takes MIL instances, said in TFLite where an operator there means the same; the plain kernels."""

    formats = ("mil",)

    def __init__(self) -> None:
        LiteRt.__init__(self, "ref", "litert-cross-dialect")

    def info(self) -> dict[str, Any]:
        return dict(LiteRt.info(self), target_dialect="tflite", known_as="litert-ref")


class _Loaded:
    """An interpreter and what its model says of its inputs and outputs; shapes: as allocated now.  undelegated: why
    XNNPACK does not compute it, "" where it does or need not.  taken: indices of the tensors that it computes."""

    def __init__(self, model: bytes, ins: Any, outs: Any, interpreter: Any) -> None:
        self.model, self.ins, self.outs, self.interpreter = model, ins, outs, interpreter
        self.shapes: dict[str, Any] | None = None
        self.stateful = False
        self.undelegated = ""
        self.taken: set[int] = set()


class _Tensor:
    __slots__ = ("index", "shape", "type")

    def __init__(self, index: Any, type_: Any, shape: Any) -> None:
        self.index, self.type, self.shape = index, type_, shape


def node_names(it: Any) -> list[Any]:
    """Names of the ops as they are to be executed, delegates included."""
    try:
        inner = it._interpreter
        return [inner.NodeName(i) for i in range(inner.NumNodes())]
    except AttributeError:
        return [o["op_name"] for o in it._get_ops_details()]


def delegated(h: _Loaded, nodes: Any) -> Any:
    """Indices of the tensors that XNNPACK computes."""
    taken: set[int] = set()
    for i, name in enumerate(nodes):
        if name == "DELEGATE":
            taken.update(int(t) for t in h.interpreter._get_op_details(i)["outputs"])
    return taken


def bordering(h: _Loaded, nodes: Any) -> bool:
    """Does XNNPACK take a value from another node, or the other way round?"""
    made: tuple[set[int], set[int]] = set(), set()
    read: tuple[set[int], set[int]] = set(), set()
    for i, name in enumerate(nodes):
        told, whose = h.interpreter._get_op_details(i), name == "DELEGATE"
        made[whose].update(int(t) for t in told["outputs"])
        read[whose].update(int(t) for t in told["inputs"])
    return bool(made[0] & read[1] or made[1] & read[0])


def to_lite(v: Any, type_: Any) -> Any:
    """Array -> what ``set_tensor`` takes."""
    if type_ == STRING:
        out = np.empty(v.size, object)
        out[:] = [x.encode("utf-8", "surrogateescape") if isinstance(x, str) else x for x in v.ravel()]
        # a rank-0 object array would store its pointer
        return out.reshape(v.shape) if v.ndim else np.array(out[0])
    name = dtype_name(v)
    if name == "i2":
        raise Unsupported("INT2 inputs cannot be set")
    if name == "i4":
        bits = raw(v).view(np.uint8) & 15
        return (bits.astype(np.int8) ^ 8) - np.int8(8)
    if name in ("u4",):
        return raw(v).view(np.uint8) & 15
    if name.startswith("f8"):
        return raw(v).view(np.int8)
    return v


def _sorted(e: Any) -> Any:
    """The exception as one of ours where the runtime declares a gap."""
    return Unsupported(str(e)) if _GAPS.search(str(e)) or _CLAIM.search(str(e)) else e


def io_tensors(model: bytes) -> Any:
    """Inputs and outputs of the first subgraph, {name: _Tensor}, read from the bytes: a hundredth of what the
    wrapper's details cost, and they tell types that its NumPy dtypes do not."""

    def field(table: Any, i: Any) -> Any:
        vtable = table - _I32(model, table)[0]
        if 4 + 2 * i >= _U16(model, vtable)[0]:
            return 0
        offset = _U16(model, vtable + 4 + 2 * i)[0]
        return table + offset if offset else 0

    def vector(table: Any, i: Any) -> tuple[Any, Any] | tuple[int, int]:
        at = field(table, i)
        if not at:
            return 0, 0
        at += _U32(model, at)[0]
        return at + 4, _U32(model, at)[0]

    try:
        graphs, n = vector(_U32(model, 0)[0], 2)
        graph = graphs + _U32(model, graphs)[0] if n else 0
        tensors, _ = vector(graph, 0)
        both = []
        for f in (1, 2):
            at, n = vector(graph, f)
            out = {}
            for i in struct.unpack_from(f"<{n}i", model, at):
                t = tensors + 4 * i
                t += _U32(model, t)[0]
                # shape is field 0, type 1, name 3; the vtable is read once
                vtable = t - _I32(model, t)[0]
                _, _, shape, type_, _, name = _FIELDS(model, vtable) if _U16(model, vtable)[0] >= 12 else (0,) * 6
                if not name:
                    return {}, {}
                at_name = t + name
                at_name += _U32(model, at_name)[0]
                text = bytes(model[at_name + 4 : at_name + 4 + _U32(model, at_name)[0]]).decode("utf-8", "replace")
                dims = ()
                if shape:
                    at_shape = t + shape
                    at_shape += _U32(model, at_shape)[0]
                    dims = struct.unpack_from(f"<{_U32(model, at_shape)[0]}i", model, at_shape + 4)
                out[text] = _Tensor(i, model[t + type_] if type_ else 0, dims)
            both.append(out)
        return both
    except (struct.error, IndexError):
        return {}, {}  # not a model: the interpreter says so
