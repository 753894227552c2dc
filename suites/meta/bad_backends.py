"""Backends for the tests of the worker: a toy format, and every way to misbehave.

A toy model is JSON: one entry per instance, {"do": what, "in": [names], "out": name}; what is done with the inputs is
adding them up, or one of the misdeeds below.
"""

import ctypes
import json
import os
import signal
import sys
import time

import numpy as np


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

    def one(self, do, xs):
        if do == "segv":
            ctypes.string_at(0)
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
    """Every third run spoils the process, which dies a little later, at somebody else's work."""

    name = "corrupts"

    def __init__(self):
        self.runs = 0

    def run(self, handle, inputs):
        self.runs += 1
        if self.runs == 4:
            os.abort()
        return super().run(handle, inputs)


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


class DiesUnasked(Toy):
    """Serves nobody: a serving process is gone as soon as it is there (the first fork is the greeting's)."""

    name = "dies-unasked"

    def __init__(self):
        self.seen = 0
        os.register_at_fork(before=self.count, after_in_child=self.leave)

    def count(self):
        self.seen += 1

    def leave(self):
        if self.seen > 1:
            os.kill(os.getpid(), signal.SIGKILL)
