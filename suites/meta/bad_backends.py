"""Backends for the tests of the worker: a toy format, and every way to misbehave.

A toy model is JSON: one entry per instance, {"do": what, "in": [names], "out": name}; what is done with the inputs is
adding them up, or one of the misdeeds below.
"""

import ctypes
import json
import os
import resource
import signal
import stat
import sys
import threading
import time

import numpy as np


class Short(np.ndarray):
    """An array that is less than it says."""

    def tobytes(self, *a):
        return b"abc"


class Vast(np.ndarray):
    """One that says more than it is."""

    shape = (1 << 40, 7)  # type: ignore[override]
    nbytes = 3


class Retyped(np.ndarray):
    """One that says it is of another type, twice."""

    dtype = np.dtype("f8")
    tag = "i4 7"


HOARD: list[bytes] = []  # what a runtime does not give back
LIES = {"short": Short, "vast": Vast, "retyped": Retyped}


def is_socket(fd):
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False


class Unsupported(Exception):
    """Counted by its name, wherever it is defined."""


class Toy:
    name = "toy"
    formats = ("toy",)
    pack = 8

    def version(self):
        return "1.0"

    def info(self):
        return {"opset": 3}

    def load(self, model, format):
        nodes = json.loads(model)
        for n in nodes:
            if n["do"] == "crash-at-load":
                ctypes.string_at(0)
            if n["do"] == "refuse-at-load":
                raise ValueError(f"cannot load node {n['node']}" if n.get("say") else "cannot load")
            if n["do"] == "unsupported":
                raise Unsupported("no kernel for this dtype")
        return nodes

    def run(self, handle, inputs):
        print("chatter on stdout", flush=True)
        sys.stderr.write("chatter on stderr\n")
        if sum(n["do"].startswith("many") for n in handle) > 1:
            if any(n["do"] == "many-die" for n in handle):
                ctypes.string_at(0)
            raise RuntimeError("one of them at a time")
        return {n["out"]: self.one(n["do"], [inputs[i] for i in n["in"]]) for n in handle}

    def one(self, do, xs):  # noqa: C901 - one branch for each thing that a backend may do
        if do == "segv":
            ctypes.string_at(0)
        elif do == "hoard":
            HOARD.append(b"x" * (1 << 20))
        elif do == "abort":
            sys.stderr.write("terminate called after throwing an instance of 'std::bad_thing'\n")
            os.abort()
        elif do == "fpe":
            os.kill(os.getpid(), signal.SIGFPE)
        elif do == "exit":
            os._exit(3)
        elif do == "sys-exit":
            sys.exit(3)
        elif do == "hang":
            time.sleep(1000)
        elif do == "nap":
            time.sleep(1.4)
        elif do == "spin":
            while True:
                pass
        elif do == "memory":
            return np.ones((1 << 40,), np.uint8)
        elif do == "big":
            return np.zeros((1 << 29,), np.uint8)
        elif do == "raise":
            raise RuntimeError("index 7 is out of bounds")
        elif do == "negative-crashes":
            if (np.asarray(xs[0]) < 0).any():
                ctypes.string_at(0)
        elif do == "negative-raises":
            if (np.asarray(xs[0]) < 0).any():
                raise RuntimeError("negative")
        elif do == "type":
            return object()
        elif do == "leaves-and-dies":
            if os.fork() == 0:
                time.sleep(600)
            os.abort()
        elif do == "leaves-a-session":  # its number is the answer
            up, down = os.pipe()
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.write(down, os.getpid().to_bytes(4, "little"))
                    os.closerange(3, 256)
                    time.sleep(600)
                os._exit(0)
            os.wait()
            return np.array(int.from_bytes(os.read(up, 4), "little"), np.int64)
        elif do == "forks-and-returns":
            os.fork()
        elif do == "breaks-numpy":
            np.ndarray = None
        elif do == "closes":
            os.closerange(3, 256)
            time.sleep(600)
        elif do == "scribbles":
            for fd in filter(is_socket, range(3, 64)):
                os.write(fd, b"no frame of ours " * 4)
        elif do == "real-time":
            os.kill(os.getpid(), signal.SIGRTMIN + 6)
        elif do in LIES:
            return np.asarray(sum(xs[1:], xs[0])).view(LIES[do])
        elif do == "unspeakable":
            from opconform_worker import TypeOnly

            return TypeOnly(object(), ())
        elif do == "float":
            return 1.5
        elif do == "nan":
            return np.full_like(xs[0], np.nan)
        elif do == "echo":
            return xs[0]
        return sum(xs[1:], xs[0])


class ReturnsList(Toy):
    name = "returns-list"

    def run(self, handle, inputs):
        return [1, 2]


class Forgetful(Toy):
    """Gives no output at all, or one under another name."""

    name = "forgetful"

    def run(self, handle, inputs):
        return {"surprise": np.zeros(3, np.float32)}


class Generous(Toy):
    """Gives more than it was asked for."""

    name = "generous"

    def run(self, handle, inputs):
        return {**super().run(handle, inputs), "inside": np.zeros(3, np.float32)}


class Misnames(Toy):
    """One of its outputs has another name."""

    name = "misnames"

    def run(self, handle, inputs):
        return {("other" if k == "z1" else k): v for k, v in super().run(handle, inputs).items()}


class NoComma(Toy):
    formats = "toy"


class ManyInOne(Toy):
    pack = "many"


class Unsayable(Toy):
    def info(self):
        return {"device": object()}


class Corrupts(Toy):
    """Every third run corrupts its process, which dies a little later, during another instance."""

    name = "corrupts"

    def __init__(self):
        self.runs = 0

    def run(self, handle, inputs):
        self.runs += 1
        if self.runs == 4:
            os.abort()
        return super().run(handle, inputs)


class Lawless(Toy):
    """Sets its process up in every way that it should not."""

    name = "lawless"

    def __init__(self):
        os.chdir("/")
        os.umask(0o777)
        os.environ.clear()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        json.dumps = json.loads = None
        threading.Thread(target=time.sleep, args=(600,)).start()

    def load(self, model, format):
        return json.JSONDecoder().decode(model.decode())


class StartsOnce(Toy):
    """Its licence is for one process, which ends after some time."""

    name = "starts-once"

    def __init__(self, lock):
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
        os.register_at_fork(after_in_parent=self.forked)
        self.forks_seen = 0

    def forked(self):
        self.forks_seen += 1
        if self.forks_seen == 3:  # for the greeting, and two serving processes
            os._exit(5)


class Odd(dict):
    """A mapping that breaks."""

    def get(self, *a):
        raise KeyError("never")


class GivesOdd(Toy):
    name = "gives-odd"

    def run(self, handle, inputs):
        return Odd(super().run(handle, inputs))


class NoFork(Toy):
    name = "no-fork"
    forks = False


class NotABackend:
    name = "nothing"
    formats = ("toy",)


class NeedsMissing(Toy):
    def __init__(self):
        import package_that_does_not_exist  # noqa: F401


class DiesAtStart(Toy):
    def __init__(self):
        os.abort()


class Sleeps(Toy):
    def __init__(self):
        time.sleep(600)


class DiesUnasked(Toy):
    """Serves nobody: a serving process is gone as soon as it is there (the first fork is the greeting's); of some of
    them only, where it is told how many."""

    name = "dies-unasked"

    def __init__(self, times=1000):
        self.seen, self.times = 0, times
        os.register_at_fork(before=self.count, after_in_child=self.leave)

    def count(self):
        self.seen += 1

    def leave(self):
        if 1 < self.seen <= 1 + self.times:
            os.kill(os.getpid(), signal.SIGKILL)
