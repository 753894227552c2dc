"""Plug-ins that break the contract of a backend, each in one way, on the toy dialect."""

import ctypes
import json
import os
import time
import types

import numpy as np

from suites.meta.toy_backends import Right


class Raises(Right):
    def load(self, model, format):
        raise KeyError("no such kernel")


class Unsupporting(Right):
    class Unsupported(Exception):
        pass

    def load(self, model, format):
        raise self.Unsupported("needs a licence")


class Unfinished(Right):
    def run(self, handle, inputs):
        raise NotImplementedError("one day")


class Elsewhere(Right):
    """What others call the same, in a hierarchy of their own."""

    class NotImplemented(RuntimeError):
        pass

    class NoKernel(NotImplemented):
        pass

    def load(self, model, format):
        raise self.NoKernel("no kernel for these types")


class Narrow(Right):
    dtypes = ("f64", "i64")

    def load(self, model, format):
        raise TypeError("f32 is too narrow")


class Wide(Narrow):
    dtypes = ("f32", "f64")


class WrongContainer(Right):
    def run(self, handle, inputs):
        return next(iter(super().run(handle, inputs).values()))


class Positional(Right):
    def run(self, handle, inputs):
        return list(super().run(handle, inputs).values())


class OneTooMany(Right):
    def run(self, handle, inputs):
        return [*super().run(handle, inputs).values(), None]


class Generous(Right):
    def run(self, handle, inputs):
        return {**super().run(handle, inputs), "inside": 1.0}


class WrongNumber(Right):
    def run(self, handle, inputs):
        return {}


class WrongType(Right):
    def run(self, handle, inputs):
        return dict.fromkeys(super().run(handle, inputs), "a text")


class WrongDtype(Right):
    def run(self, handle, inputs):
        return {k: np.asarray(v, np.float64) for k, v in super().run(handle, inputs).items()}


class Objects(Right):
    def run(self, handle, inputs):
        return {k: np.asarray(v).astype(object) for k, v in super().run(handle, inputs).items()}


class Mapped(Right):
    """Right, in a mapping that is no dict."""

    def run(self, handle, inputs):
        return types.MappingProxyType(super().run(handle, inputs))


class Speechless(Right):
    """Refuses with an exception that cannot be put into words."""

    class Odd(Exception):
        def __str__(self):
            raise KeyError("no words")

    def load(self, model, format):
        raise self.Odd()


class Loud(Right):
    """Refuses in several lines that would rule a terminal."""

    def load(self, model, format):
        raise RuntimeError("first line\n\x1b[31msecond line\x1b[0m\0\r\nthird")


class Trusting(Right):
    """Computes whatever it is given, and says so."""

    validates = False

    def run(self, handle, inputs):
        return dict.fromkeys((n["out"] for n in handle), np.zeros(1, np.float32))

    def load(self, model, format):
        return json.loads(model)


class AllNan(Right):
    def run(self, handle, inputs):
        return {k: np.full(v.shape, np.nan, np.float32) for k, v in super().run(handle, inputs).items()}


class Transposed(Right):
    def run(self, handle, inputs):
        return {k: np.asarray(v).T for k, v in super().run(handle, inputs).items()}


class Aborts(Right):
    def run(self, handle, inputs):
        os.abort()


class Segfaults(Right):
    def load(self, model, format):
        ctypes.string_at(0)


class Exits(Right):
    def run(self, handle, inputs):
        os._exit(0)


class Hangs(Right):
    def run(self, handle, inputs):
        time.sleep(3600)


class EatsMemory(Right):
    def run(self, handle, inputs):
        return {k: np.ones((1 << 42,), np.uint8) for k in super().run(handle, inputs)}


class Chatters(Right):
    """Right, but writes more to its standard output than a pipe holds, and through C as well."""

    def run(self, handle, inputs):
        print("chatter " * 20_000)
        os.write(1, b"raw chatter\n" * 1000)
        ctypes.CDLL(None).puts(b"chatter in C")
        return super().run(handle, inputs)
