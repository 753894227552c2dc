"""The process a backend lives in.  Stand-alone: Python 3.8 or newer, NumPy 1 or 2, the backend's package.

Started by ``harness.backends.pool`` as ``python worker.py FD CONFIG``.  With "fork" in the configuration the
process is a *zygote*: it imports the backend once, then forks a serving child for every socket that it is
handed, so that a crash costs a fork (10-20 ms) and not an import.  Without it (macOS, runtimes that do not
survive a fork) it serves FD itself.

A frame is ``<IIQ``: length of the JSON header, flags, length of the payload; then both.  Frames above 128 KiB
travel in a memory file whose descriptor rides along with the fixed part (flag 1).  An array is its type and
shape in the header ("f32 2 3") and raw little-endian bytes, 16-byte aligned, in the payload: no pickle, since
pickles of NumPy 2 do not load under NumPy 1.

A backend is any class with ``name``, ``formats``, ``version()``, ``load(model, format)``, ``run(handle,
inputs)``; see ``Backend`` below for what else it may define.
"""

# mypy: ignore-errors
# Runs under any Python from 3.8 on, with runtimes that have no types.

from __future__ import annotations

import sys

if __name__ == "__main__":
    del sys.path[0]  # this folder has a file called onnxruntime.py

import array
import atexit
import collections.abc
import contextlib
import faulthandler
import gc
import importlib
import importlib.util
import json
import mmap
import os
import resource
import signal
import socket
import struct
import tempfile
import time
import traceback

import numpy as np

HEAD = struct.Struct("<IIQ")
# Larger frames go through a memory file, which costs four times as much: two of these fit into a socket's buffer where
# the system allows no more than Linux does by default (416 KiB).
INLINE = 128 << 10
FLUSH = 0.004  # seconds of work at most that a crash makes undone
PAGE = struct.Struct("<qqqqd")  # batch, job, set, phase; when the job began
PHASES = ("idle", "load", "run", "answer")
MARK = "OPCONFORM_PROCESS"  # in the environment of all processes of a backend, in whatever session they are
SWEEP = 2.0  # seconds at most to end those
PAD = [b"\0" * n for n in range(16)]
GAPS = ("Unsupported", "NotImplementedError", "NotImplemented")  # classes of exceptions that declare a gap

_NATIVE = {
    "f64": "f8",
    "f32": "f4",
    "f16": "f2",
    "i64": "i8",
    "i32": "i4",
    "i16": "i2",
    "i8": "i1",
    "u64": "u8",
    "u32": "u4",
    "u16": "u2",
    "u8": "u1",
    "bool": "?",
    "c64": "c8",
    "c128": "c16",
}
_EXTRA = {
    "bf16": ("bfloat16", "u2"),
    "f8e4m3fn": ("float8_e4m3fn", "u1"),
    "f8e4m3fnuz": ("float8_e4m3fnuz", "u1"),
    "f8e5m2": ("float8_e5m2", "u1"),
    "f8e5m2fnuz": ("float8_e5m2fnuz", "u1"),
    "f8e8m0": ("float8_e8m0fnu", "u1"),
    "f4e2m1": ("float4_e2m1fn", "u1"),
    "f6e2m3": ("float6_e2m3fn", "u1"),
    "f6e3m2": ("float6_e3m2fn", "u1"),
    "i4": ("int4", "i1"),
    "u4": ("uint4", "u1"),
    "i2": ("int2", "i1"),
    "u2": ("uint2", "u1"),
}
_BY_NAME = {k: np.dtype(v) for k, v in _NATIVE.items()}
_TAGGED = {}
try:
    import ml_dtypes as _ml
except ImportError:
    _ml = None
for _n, (_m, _raw) in _EXTRA.items():
    if hasattr(_ml, _m):
        _BY_NAME[_n] = np.dtype(getattr(_ml, _m))
    else:
        _BY_NAME[_n], _TAGGED[_n] = np.dtype(_raw), True
_NAME_OF = {d: n for n, d in _BY_NAME.items() if n not in _TAGGED}
_WRITTEN = {}  # (dtype, shape) of arrays -> form in the header, bytes in the payload, the padding among them
_READ = {}  # form -> dtype, shape, bytes in the payload, our name if the elements are tagged
_KEPT = 1 << 13  # of each, at most, 400 bytes each: shapes recur, new ones come as long as a run lasts
_ENCODE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode  # ours, whatever a backend does to json
_DECODE = json.JSONDecoder().decode


class Unsupported(Exception):
    """Raised by a backend that does not take this op, dtype or form: its declared gap, not a failure."""


class Tagged(np.ndarray):
    """Raw integer view of elements that this environment has no NumPy dtype for; ``tag`` is our name."""

    tag = ""

    def __array_finalize__(self, obj):
        self.tag = getattr(obj, "tag", "")


class TypeOnly:
    """Only the type of an output: dtype name (or None) and shape, whose dims may be None or names."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, None if shape is None else tuple(shape)


class Backend:
    """What a backend class may define.  Only ``name``, ``formats``, ``version``, ``load`` and ``run`` are
    required, and nobody has to derive from this class.

    formats: of "onnx", "tflite", "mil", "nn".  pack: instances per model that pay best (1: never together), or
    {format: instances}.  apart: our names of the element types whose instances are better kept out of the models of
    the others.  recycle: models after which a process gives way to a fresh one (None: never for that alone).
    forks: may a process that imported the runtime fork?  acc: {dtype: accumulation dtype} if not f32 for the
    narrow ones.  flushes: dtypes whose subnormals it may flush to zero.  unused: words for what the processor offers
    (``processor.WORDS``) that this build of the runtime has no kernels for: it counts as a processor without.
    opsets: (oldest, newest) that it claims: refusing an older model is no fault, newer ones are not asked.  dtypes: our
    names of the element types that it claims: refusing a valid instance with others is no fault.  validates: False of
    one that makes no claim to refuse models that break a rule.
    Raising in load or run means rejected; an exception whose class, or a class that it derives from, is called
    Unsupported, NotImplementedError or NotImplemented means unsupported.
    """

    name = "backend"
    formats = ()
    pack = 1
    isolate_dtypes = ()
    recycle = None
    forks = True
    acc = {}
    flushes = ()
    unused = ()

    def version(self):
        """The runtime's version."""
        raise NotImplementedError

    def load(self, model, format):
        """Bytes of a model -> whatever ``run`` wants."""
        raise NotImplementedError

    def run(self, handle, inputs):
        """{input name: array, list or None} -> {output name: array, list, TypeOnly or None}."""
        raise NotImplementedError

    def info(self):
        """More facts for the report and the engine, such as {"opset": 26, "ir": 13}."""
        return {}


def dtype_name(a):
    """Our name of an array's element type."""
    tag = getattr(a, "tag", "")
    if tag:
        return tag
    d = a.dtype
    try:
        return _NAME_OF[d]
    except KeyError:
        if d.kind in "OSU":
            return "str"
        if d.newbyteorder("=") in _NAME_OF:
            return _NAME_OF[d.newbyteorder("=")]
        raise TypeError(f"no dtype of ours for NumPy {d}") from None


def from_raw(a, name):
    """Give raw integers their type ``name``: an ml_dtypes array, ``Tagged`` without that package."""
    a = np.asarray(a)  # arithmetic on an array of rank 0 gives a scalar, which cannot be tagged
    if name in _TAGGED:
        out = a.view(_BY_NAME[name]).view(Tagged)
        out.tag = name
        return out
    return a.view(_BY_NAME[name])


def raw(a):
    """Integer view of elements whose type NumPy itself does not know; others unchanged."""
    name = dtype_name(a)
    return np.asarray(a).view(np.dtype(_EXTRA[name][1])) if name in _EXTRA else np.asarray(a)


def as_text(x):
    """Strings travel as text; bytes that are no UTF-8 survive as surrogates."""
    return x.decode("utf-8", "surrogateescape") if isinstance(x, bytes) else str(x)


def written(a):
    """How an array without strings is written: see ``_WRITTEN``."""
    form = " ".join([dtype_name(a), *map(str, a.shape)])
    pad = -a.nbytes % 16
    out = form, a.nbytes + pad, PAD[pad]
    if type(a) is np.ndarray and len(_WRITTEN) < _KEPT:
        _WRITTEN[a.dtype, a.shape] = out
    return out


def read(form):
    """How an array of that form is read: see ``_READ``."""
    name, *shape = form.split(" ")
    dtype, shape = _BY_NAME[name], tuple(map(int, shape))
    size = dtype.itemsize
    for n in shape:
        size *= n
    out = dtype, shape, size + -size % 16, name if name in _TAGGED else None
    if len(_READ) < _KEPT:
        _READ[form] = out
    return out


class Writer:
    """Collects values; ``put`` returns the header form, ``parts`` is the payload."""

    def __init__(self):
        self.parts, self.size = [], 0

    def bytes(self, b):
        self.parts.append(b)
        pad = -len(b) % 16
        if pad:
            self.parts.append(PAD[pad])
        self.size += len(b) + pad
        return len(b)

    def put(self, v):
        hit = _WRITTEN.get((v.dtype, v.shape)) if type(v) is np.ndarray else None
        if hit is not None:  # nearly always: an array of a type and shape met before
            form, size, pad = hit
            self.parts.append(v.tobytes())
            if pad:
                self.parts.append(pad)
            self.size += size
            return form
        if isinstance(v, np.ndarray):
            if type(v) is not Tagged:  # what a subclass says of its shape and bytes need not be so
                v = np.ma.MaskedArray.filled(v) if isinstance(v, np.ma.MaskedArray) else v
                v = np.ndarray.view(v, np.ndarray)
            d = v.dtype
            if dtype_name(v) == "str":
                text = [as_text(x) for x in v.ravel()]
                return {"s": [v.shape, self.bytes(_ENCODE(text).encode())]}
            if not d.isnative:
                v = v.astype(d.newbyteorder("="))
            self.bytes(v.tobytes())
            return written(v)[0]
        if v is None:
            return None
        if isinstance(v, (list, tuple)):
            return {"l": [self.put(x) for x in v]}
        if isinstance(v, dict):
            return {"d": [[k if isinstance(k, (int, str)) else k.item(), self.put(x)] for k, x in v.items()]}
        if isinstance(v, TypeOnly):
            return {"t": [v.dtype, None if v.shape is None else list(v.shape)]}
        if isinstance(v, (np.generic, bool, int, float)):
            return self.put(np.asarray(v))
        if isinstance(v, (str, bytes)):
            return self.put(np.array(v, object))
        raise TypeError(f"expected a NumPy array, got {type(v).__name__}")


class Reader:
    """Takes values out of a payload in the order in which they were put; arrays are read-only views of it."""

    def __init__(self, data):
        self.data, self.pos = data, 0

    def bytes(self, n):
        b = bytes(self.data[self.pos : self.pos + n])
        self.pos += n + (-n % 16)
        return b

    def get(self, form):
        if type(form) is str:
            dtype, shape, size, tag = _READ.get(form) or read(form)
            a = np.ndarray(shape, dtype, self.data, self.pos)
            self.pos += size
            return a if tag is None else from_raw(a, tag)
        if form is None:
            return None
        if "s" in form:
            shape, n = form["s"]
            text = text_of(self.bytes(n))
            out = np.empty(len(text), object)
            out[:] = text
            return out.reshape(shape)
        if "l" in form:
            return [self.get(f) for f in form["l"]]
        if "d" in form:
            return {k: self.get(s) for k, s in form["d"]}
        return TypeOnly(*form["t"])


def memory_file():
    """Descriptor of an anonymous file: in memory on Linux, unlinked elsewhere."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("frame")
    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


def pack_frame(header, parts, size):
    """-> (fixed part, list of buffers for the socket, descriptor or None)."""
    text = _ENCODE(header).encode()
    text += b" " * (-len(text) % 16)  # keeps the payload aligned behind it
    if len(text) + size <= INLINE:
        return HEAD.pack(len(text), 0, size), [text, *parts], None
    fd = memory_file()
    body = b"".join([text, *parts])
    view = memoryview(body)
    while len(view):
        view = view[os.write(fd, view) :]
    return HEAD.pack(len(text), 1, size), [], fd


def send_frame(sock, header, parts=(), size=0):
    """Blocking send of one frame."""
    head, rest, fd = pack_frame(header, list(parts), size)
    if fd is None:
        sock.sendall(b"".join([head, *rest]))
        return
    try:
        sock.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    finally:
        os.close(fd)


def recv_exact(sock, n):
    buf = bytearray(n)
    view, got = memoryview(buf), 0
    while got < n:
        k = sock.recv_into(view[got:])
        if not k:
            return None
        got += k
    return buf


def unhead(data):
    """The fixed part of a frame: length of its header, flags, length of its payload.  ValueError for what is none."""
    n_text, flags, size = HEAD.unpack_from(data)
    if flags > 1 or (not flags and n_text + size > INLINE):
        raise ValueError(f"no frame, but {bytes(data[: HEAD.size])!r}")
    return n_text, flags, size


def text_of(data):
    """The header of a frame."""
    return _DECODE(bytes(data).decode())


def map_body(fd, n_text, size):
    """Header and payload of a frame that came in a memory file."""
    try:
        m = mmap.mmap(fd, n_text + size)
    finally:
        os.close(fd)
    return text_of(m[:n_text]), memoryview(m)[n_text : n_text + size]


def recv_frame(sock, with_fd=False):
    """Blocking receive -> (header, payload), None at the end; with_fd adds the descriptor that came along."""
    head, fd = bytearray(), -1
    while len(head) < HEAD.size:
        data, anc, _, _ = sock.recvmsg(HEAD.size - len(head), socket.CMSG_SPACE(4))
        for _, kind, value in anc:
            if kind == socket.SCM_RIGHTS:
                fd = array.array("i", value[:4])[0]
        if not data:
            return None
        head += data
    n_text, flags, size = unhead(head)
    if flags & 1:
        return map_body(fd, n_text, size)
    body = recv_exact(sock, n_text + size)
    if body is None:
        return None
    out = text_of(body[:n_text]), memoryview(body)[n_text:]
    return (*out, fd) if with_fd else out


def first_lines(text, limit=2000):
    text = str(text).strip()
    return text if len(text) <= limit else text[:limit] + " ..."


def words(e):
    """What an exception says."""
    try:
        return first_lines(e)
    except Exception as odd:  # one that cannot say what it is
        return f"(its text: {type(odd).__name__})"


def named(e):
    """The same after the name of its class."""
    return f"{type(e).__name__}: {words(e)}"


def error_form(e, phase):
    """What an exception raised by a backend means."""
    kind = "rejected"
    if any(c.__name__ in GAPS for c in type(e).__mro__):
        kind = "unsupported"
    elif isinstance(e, MemoryError):
        kind = "crashed"
    name, text = type(e).__name__, words(e)
    if kind == "crashed":
        text = "out of memory" + (": " + text if text else "")
    elif name not in ("Unsupported", "RuntimeError", "ValueError") or not text:
        text = name + (": " + text if text else "")
    return {"kind": kind, "phase": phase, "message": text}


def _names(x):
    return isinstance(x, (tuple, list, set, frozenset)) and all(isinstance(n, str) for n in x)


def _count(x):
    return isinstance(x, int) and not isinstance(x, bool) and x > 0


# attribute of a class -> what it may be, in words and as a test
_FORMS = {
    "name": ("a name", lambda x: isinstance(x, str)),
    "formats": ("names such as ('onnx',)", lambda x: _names(x) and len(x) > 0),
    "pack": (
        "a positive number, or one for each format",
        lambda x: _count(x) or (isinstance(x, dict) and _names(list(x)) and all(map(_count, x.values()))),
    ),
    "acc": ("{dtype: dtype}", lambda x: isinstance(x, dict) and _names(list(x)) and _names(list(x.values()))),
    "flushes": ("names of dtypes", _names),
    "isolate_dtypes": ("names of dtypes", _names),
    "unused": ("names of what a processor offers", _names),
    "recycle": ("a positive number or None", lambda x: x is None or _count(x)),
}


def well_formed(backend):
    """TypeError for an attribute of another form, which would be misread later."""
    for name, (form, fits) in _FORMS.items():
        if hasattr(backend, name) and not fits(getattr(backend, name)):
            raise TypeError(f"{name}: expected {form}, got {getattr(backend, name)!r:.200}")


def claims(backend):
    """What the attributes ``opsets``, ``dtypes`` and ``validates`` say, as the engine asks for it; TypeError for other
    forms."""
    out = {}
    opsets, dtypes = getattr(backend, "opsets", None), getattr(backend, "dtypes", None)
    if opsets is not None:
        if len(opsets) != 2 or not all(isinstance(n, int) for n in opsets) or opsets[0] > opsets[1]:
            raise TypeError(f"opsets: expected (oldest, newest), got {opsets!r}")
        out["oldest_opset"], out["opset"] = opsets
    if getattr(backend, "validates", True) is False:
        out["validates"] = False
    if dtypes is not None:
        unknown = [d for d in dtypes if d not in _BY_NAME and d != "str"]
        if isinstance(dtypes, str) or unknown:
            raise TypeError(f"dtypes: expected names among {' '.join([*_BY_NAME, 'str'])}, got {dtypes!r}")
        out["dtypes"] = list(dtypes)
    return out


class Server:
    """Runs jobs on a backend object; the same code serves a socket and, without a process, a caller."""

    def __init__(self, backend, page=None, cap=1 << 28):
        self.backend, self.page, self.cap = backend, page, cap
        self.began = 0.0
        self.batch = self.job = 0
        self.home = os.getpid()

    def hello(self):
        b = self.backend
        well_formed(b)
        out = {"name": getattr(b, "name", type(b).__name__), "version": str(b.version())}
        out.update(formats=list(b.formats), pack=getattr(b, "pack", 1), acc=getattr(b, "acc", {}))
        out.update(flushes=list(getattr(b, "flushes", ())), isolate_dtypes=list(getattr(b, "isolate_dtypes", ())))
        out["recycle"] = getattr(b, "recycle", None)
        out.update(python=sys.version.split()[0], numpy=np.__version__, pid=os.getpid())
        out["cpu"] = [w for w in sibling("processor").words() if w not in getattr(b, "unused", ())]
        info = getattr(b, "info", None)
        more = info() if info else {}
        try:
            text = _ENCODE(more)
        except (TypeError, ValueError) as e:
            text = str(e)
        if not isinstance(more, dict) or not text.startswith("{"):
            raise TypeError(f"info(): expected a dict that JSON can say, got {more!r:.200}")
        out["info"] = {**claims(b), **more}
        return out

    def mark(self, phase, index=0, start=False):
        if self.page is not None:
            if start:
                self.began = time.monotonic()
            PAGE.pack_into(self.page, 0, self.batch, self.job, index, phase, self.began)

    def execute(self, job, reader, out):
        """One job -> its answer (header form); outputs go into ``out``, a Writer."""
        began = time.perf_counter()
        self.mark(1, 0, True)
        answer = {"id": job["id"], "sets": []}
        try:
            model = reader.bytes(job["model"])
            feeds = []
            specs = job["specs"]
            for r in range(len(specs)):
                spec = specs[r] if specs[r] is not None else specs[0]
                feeds.append(dict(zip(job["ins"], map(reader.get, spec))))
        except Exception as e:  # an earlier model's backend has broken what is used here
            answer["load"] = {"kind": "harness_error", "phase": "load", "message": named(e)}
            return answer
        try:
            handle = self.backend.load(model, job["format"])
        except BaseException as e:  # a plug-in may raise anything, SystemExit too
            only(self.home)
            answer["load"] = error_form(e, "load")
            return answer
        only(self.home)
        last = None
        for r, feed in enumerate(feeds):
            self.mark(2, r)
            try:
                got = self.backend.run(handle, feed)
            except BaseException as e:
                only(self.home)
                answer["sets"].append({"error": error_form(e, "run")})
                continue
            only(self.home)
            form = self.outputs(got, job["outs"], out)
            if "spec" in form and form["spec"] == last:
                form = {}
            elif "spec" in form:
                last = form["spec"]
            answer["sets"].append(form)
        answer["ms"] = (time.perf_counter() - began) * 1e3
        return answer

    def outputs(self, got, names, out):
        if not isinstance(got, collections.abc.Mapping):
            text = f"run returned {type(got).__name__}, expected a dict of output name -> array"
            return {"error": {"kind": "harness_error", "phase": "run", "message": text}}
        mark = len(out.parts), out.size
        spec, name = [], ""
        try:
            for name in names:
                v = got.get(name)
                size = sized(v)
                if size + out.size - mark[1] > self.cap:
                    if size <= self.cap:
                        raise ValueError(f"larger than the cap of {self.cap >> 20} MiB")
                    v = TypeOnly(dtype_name(v), v.shape)  # nobody expects that much: its shape tells
                spec.append(out.put(v))
            given, keys = sum(n in got for n in names), list(got)
        except Exception as e:  # what it gave is its own class, which may do anything
            del out.parts[mark[0] :]
            out.size = mark[1]
            form = error_form(e, "run")
            if form["kind"] != "crashed":  # memory ran out
                form.update(kind="harness_error", message=f"output {name!r}: {form['message']}")
            return {"error": form}
        form = {"spec": spec}
        if len(keys) > given:
            asked = set(names)
            extra = [n for n in keys if n not in asked][:4]
            if given < len(asked):  # under other names, most likely
                form["odd"] = f"run returned {extra}, expected {[n for n in names if n not in got][:4]}"
            else:  # more than was asked for is no fault, but its author may not know
                form["beside"] = f"run returned {extra} beside the outputs that were asked for; they are not looked at"
        return form

    def serve(self, sock):
        """Answers until the peer goes away."""
        gc.freeze()  # the runtime's own objects stay: no collection has to look at them
        self.rss = Resident()
        while True:
            frame = recv_frame(sock)
            if frame is None:
                return
            header, payload = frame
            if header["op"] == "hello":
                send_frame(sock, self.hello())
            elif header["op"] == "run":
                self.run_batch(sock, header, Reader(payload))

    def run_batch(self, sock, header, reader):
        self.batch = header["batch"]
        answers, out, flushed = [], Writer(), time.monotonic()
        jobs = header["jobs"]
        fatal = False
        for i, job in enumerate(jobs):
            self.job = job["id"]
            answers.append(self.execute(job, reader, out))
            fatal = any(e.get("kind") == "crashed" for e in errors_of(answers[-1]))
            now = time.monotonic()
            if i + 1 == len(jobs) or fatal or now - flushed > FLUSH or out.size > 1 << 20:
                self.mark(3)
                send_frame(sock, {"batch": self.batch, "answers": answers, "rss": self.rss()}, out.parts, out.size)
                answers, out, flushed = [], Writer(), now
            if fatal:
                os._exit(70)  # memory ran out once: what follows would fail for that reason alone
        self.job = -1
        self.mark(0)


def only(home):
    """Ends a process that the backend forked and let return: two would answer."""
    if os.getpid() != home:
        os._exit(0)


def sized(v):
    """The bytes of an array, whatever its class says; 0 of anything else."""
    return np.ndarray.nbytes.__get__(v) if isinstance(v, np.ndarray) else 0


def errors_of(answer):
    """The error forms inside an answer."""
    return [answer["load"]] if "load" in answer else [f["error"] for f in answer["sets"] if "error" in f]


class Resident:
    """Resident memory of this process, in bytes (the peak where the current value is not to be had)."""

    def __init__(self):
        try:
            self.fd = os.open("/proc/self/statm", os.O_RDONLY)  # opening costs as much as a hundred readings
        except OSError:
            self.fd = None

    def __call__(self):
        try:
            return int(os.pread(self.fd, 64, 0).split()[1]) * resource.getpagesize()
        except (TypeError, OSError, ValueError, IndexError):
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def sibling(name):
    """A module of this folder, also where the folder is no package (in a process of its own)."""
    if __name__ != "__main__":
        return importlib.import_module("harness.backends." + name)
    full = "opconform_" + name
    if full not in sys.modules:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
        spec = importlib.util.spec_from_file_location(full, path)
        module = sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full]


def make_backend(config):
    """Import the backend class and create it."""
    sys.path[:0] = [p for p in config.get("path", []) if p not in sys.path]
    sys.modules["opconform_worker"] = sys.modules[__name__]
    if config.get("file"):
        spec = importlib.util.spec_from_file_location("opconform_backend", config["file"])
        module = importlib.util.module_from_spec(spec)
        sys.modules["opconform_backend"] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(config["module"])
    cls = module
    for part in config["class"].split("."):
        cls = getattr(cls, part)
    backend = cls(**config.get("kwargs", {}))
    for need in ("formats", "version", "load", "run"):
        if not hasattr(backend, need):
            what = "a backend needs formats, version(), load(), run()"
            raise TypeError(f"{config['class']} has no {need!r}: {what}")
    return backend


def limit(config):
    """Resource limits of a serving process: no core files, a cap on the address space (a lower one stays)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = config.get("memory")
    if memory and sys.platform != "darwin":  # macOS does not enforce it
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        memory = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def ended(pid):
    """Wait for a child; its status, None where something else in this process has taken that."""
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return None


def ending(status):
    """A status in words."""
    if status is None:
        return "ended, nobody can say how"
    if os.WIFSIGNALED(status):
        names = {int(n): n.name for n in signal.Signals}  # those of real time have none
        return f"killed by {names.get(os.WTERMSIG(status), os.WTERMSIG(status))}"
    return f"exited with code {os.WEXITSTATUS(status)}"


def forked_hello(backend):
    """The greeting, asked for in a child: probing runs the runtime, and a zygote must stay untouched."""
    answer = memory_file()  # no pipe: its end would not come while a process that the backend left holds it
    here = os.getpid()
    pid = os.fork()
    if pid == 0:
        home = os.getpid()
        sibling("supervisor").die_with(here)
        try:
            out = {"hello": Server(backend).hello()}
        except BaseException as e:
            out = {"error": named(e)}
        only(home)
        os.pwrite(answer, _ENCODE(out).encode(), 0)
        os._exit(0)
    status = ended(pid)
    text = os.pread(answer, 1 << 20, 0)
    os.close(answer)
    return text_of(text) if text else {"error": f"its process {ending(status)} when asked for its version"}


def serve_forked(control, backend, config, page):
    """The zygote: a child per socket handed over, an exit status per child asked about."""
    while True:
        frame = recv_frame(control, with_fd=True)
        if frame is None:
            return
        header, _, fd = frame
        if header["op"] == "fork":
            here = os.getpid()
            pid = os.fork()
            if pid == 0:
                control.close()
                try:
                    sibling("supervisor").die_with(here)
                    limit(config)
                    Server(backend, page, config.get("cap", 1 << 28)).serve(socket.socket(fileno=fd))
                except BaseException:
                    traceback.print_exc()  # into the log, whose end the host quotes
                    os._exit(71)
                os._exit(0)
            if fd >= 0:  # -1: none could be handed over
                os.close(fd)
            send_frame(control, {"pid": pid})
        elif header["op"] == "reap":
            send_frame(control, {"status": ended(header["pid"])})


def marked(mark):
    """Processes but this one whose environment began with ``mark``; none where the system does not tell (macOS)."""
    out, text = [], mark.encode()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/" + name + "/environ", "rb", buffering=0) as f:
                if text in f.readall().split(b"\0"):
                    out.append(int(name))
        except OSError:  # it has gone, or is somebody else's
            pass
    return out


def sweep(mark):
    """Ends what a backend left in a session or a group of its own, and what that forks meanwhile."""
    until = time.monotonic() + SWEEP
    while time.monotonic() < until:
        found = marked(mark)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def last():
    """The end: threads that go on go along.  The supervisor ends the processes that a backend left."""
    atexit._run_exitfuncs()
    os._exit(0)


def main():
    sock = socket.socket(fileno=int(sys.argv[1]))
    config = json.loads(sys.argv[2])
    log, page_fd = config["log"], config["page"]
    os.dup2(log, 1)  # a runtime's chatter must reach neither the protocol nor the terminal
    os.dup2(log, 2)
    faulthandler.enable(2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the host
    page = mmap.mmap(page_fd, 4096)
    home = os.getpid()
    try:
        backend = make_backend(config)
        only(home)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else nobody learns how a child ended
        fork = bool(config.get("fork")) and getattr(backend, "forks", True)
        hello = forked_hello(backend) if fork else {"hello": Server(backend).hello()}
    except BaseException as e:
        only(home)
        missing = e.name if isinstance(e, ModuleNotFoundError) else None
        send_frame(sock, {"error": named(e), "missing": missing})
        return
    hello["fork"] = fork
    send_frame(sock, hello)
    if "error" in hello:
        return
    if fork:
        serve_forked(sock, backend, config, page)
    else:
        limit(config)
        Server(backend, page, config.get("cap", 1 << 28)).serve(sock)


if __name__ == "__main__":
    main()
    last()
