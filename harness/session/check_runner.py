"""Is a program a runner?  The protocol, step by step, with what it answered held against the schema."""

from __future__ import annotations

import contextlib
import json
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from harness.backends.runner import messages
from harness.cases.case import Case, draw_case
from harness.core.errors import UsageError
from harness.core.escape import one_line
from harness.core.instance import Arg
from harness.declare import OpVersion, registry
from harness.engine.batching import build
from harness.workers.info import declared
from harness.workers.worker import ProtocolError

SCHEMA = Path(messages.__file__).with_name("runner_protocol.schema.json")
DEADLINE = 20.0  # seconds for one answer
GARBAGE = b"\x00this is no model\xff" * 8
# format -> an op that every runtime has, of one input of f32
SIMPLEST = {"onnx": "onnx/Relu/14", "tflite": "tflite/RELU/1", "mil": "mil/relu/ios15", "nn": "nn/activation.ReLU/1"}


@dataclass(frozen=True)
class Step:
    """One step of the check.  wrong: what the runner did wrong, empty where it did it right."""

    name: str
    wrong: str = ""


class Conversation:
    """A runner that is asked by hand.  Close it in the end."""

    def __init__(self, command: str) -> None:
        self.process = messages.Process(shlex.split(command))
        self.number = 0

    def ask(self, method: str, parts: Any = (), size: int = 0, **fields: Any) -> tuple[dict[str, Any], bytes]:
        """The answer to a request, its form checked.  Raises ProtocolError, messages.Ended, TimeoutError."""
        number = self.send(method, parts, size, **fields)
        return self.answer(number)

    def send(self, method: str, parts: Any = (), size: int = 0, **fields: Any) -> int:
        """Send a request; its number."""
        number, self.number = self.number, self.number + 1
        self.process.send({"id": number, "method": method, **fields}, parts, size)
        return number

    def answer(self, number: int) -> tuple[dict[str, Any], bytes]:
        """The next message, which must answer that request."""
        late = threading.Timer(DEADLINE, self.process.process.kill)
        late.start()
        try:
            header, payload = self.process.receive()
        except messages.Ended:
            if late.finished.is_set():
                raise TimeoutError(f"no answer within {DEADLINE:.0f} s") from None
            raise
        finally:
            late.cancel()
        hold(header, "answer")
        if header["id"] != number:
            raise ProtocolError(f"id: expected {number}, the request's, got {header['id']}")
        return header, payload

    def close(self) -> None:
        self.process.close()


@cache
def _schema() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(SCHEMA.read_text())
    return read


def hold(value: Any, part: str) -> None:
    """Raises ProtocolError, naming the field, where a value is not what that part of the schema says."""
    schema = {"$defs": _schema()["$defs"], "$ref": f"#/$defs/{part}"}
    e = best_match(Draft202012Validator(schema).iter_errors(value))
    if e is not None:
        where = ".".join(map(str, e.absolute_path))
        raise ProtocolError(f"{where + ': ' if where else ''}{one_line(e.message)[:200]}")


def check(command: str) -> Iterator[Step]:
    """Yields the steps as they are done; what comes after a broken one that it needs is left out.

    Raises UsageError where the command cannot be started."""
    try:
        talk = Conversation(command)
    except (RuntimeError, ValueError) as e:
        raise UsageError(str(e)) from None
    with contextlib.closing(talk):
        hello: dict[str, Any] = {}
        yield _tried("hello", lambda: hello.update(_hello(talk)))
        if not hello:
            return
        fmt = next((f for f in hello["formats"] if f in SIMPLEST), None)
        if fmt is None:
            yield Step("formats", f"expected one of {' '.join(SIMPLEST)}, got {' '.join(hello['formats'])}")
            return
        yield from _models(talk, fmt, hello.get("opsets"))
    yield _tried("ends when standard input ends", lambda: _ends(command))


def _tried(name: str, step: Callable[[], Any]) -> Step:
    try:
        step()
    except (ProtocolError, messages.Ended, TimeoutError, Wrongly) as e:
        return Step(name, str(e) or type(e).__name__)
    return Step(name)


class Wrongly(Exception):
    """The form is right, what it says is not."""


def _result(answered: tuple[dict[str, Any], bytes], what: str) -> tuple[dict[str, Any], bytes]:
    header, payload = answered
    if "error" in header:
        raise Wrongly(f"{what}: expected a result, got {header['error']['kind']}: {header['error']['message'][:200]}")
    return header["result"], payload


def _hello(talk: Conversation) -> dict[str, Any]:
    said = _result(talk.ask("hello", protocol=messages.PROTOCOL), "hello")[0]
    hold(said, "hello")
    attributes = {k: v for k, v in said.items() if k not in ("version", "info")}
    try:
        declared(said["name"], {"attributes": attributes, "version": said["version"], "info()": said.get("info", {})})
    except Exception as e:
        raise Wrongly(str(e)) from None
    return said


def _at(fmt: str, claimed: Sequence[int] | None) -> tuple[OpVersion, Any]:
    """The simplest op at an opset that the runner claims.  claimed: the oldest and the newest.  Raises Wrongly."""
    named = SIMPLEST[fmt].rpartition("/")[0]
    every = registry.dialect(named.partition("/")[0]).versions
    for v in (every[SIMPLEST[fmt]], *(v for key, v in every.items() if key.rpartition("/")[0] == named)):
        for opset in v.opsets:
            if claimed is None or not isinstance(opset, int) or claimed[0] <= opset <= claimed[1]:
                return v, opset
    raise Wrongly(f"opsets: expected some of {named}, got {list(claimed or ())}")


def _simplest(v: OpVersion, opset: Any) -> Iterator[Case]:
    """Instances of the simplest op, of f32, with elements, of at least two axes: not every runtime has fewer."""
    for i in range(1000):
        case = draw_case(v, opset, 0, i, 1, invalid=False)
        inputs = [x for x in case.draws[0].values() if isinstance(x, np.ndarray)] if case.draws else []
        run_time = not any(isinstance(a, Arg) and a.const for a in case.inst.args.values())
        plain = all(x.size and x.ndim > 1 and np.isfinite(x).all() for x in inputs)
        if case.dtype_name == "f32" and run_time and inputs and plain:
            yield case


def _models(talk: Conversation, fmt: str, claimed: Sequence[int] | None) -> Iterator[Step]:
    try:
        v, opset = _at(fmt, claimed)
    except Wrongly as e:
        yield Step("opsets", str(e))
        return
    cases = _simplest(v, opset)
    first, second = next(cases), next(cases)
    built = [build(c.version.dialect, (c,)) for c in (first, second)]

    def load(k: int) -> None:
        _result(talk.ask("load", [built[k].data], len(built[k].data), model=k, format=fmt), f"load of {v.key}")

    def run(k: int) -> None:
        case, model = (first, second)[k], built[k]
        payload = messages.Payload()
        forms = [{"name": n, **payload.put(np.asarray(case.draws[0][slot]))} for n, slot, _ in model.inputs[0]]
        answered = _result(talk.ask("run", payload.parts, payload.size, model=k, inputs=forms), "run")
        _compare(answered, case, model.outputs[0])

    def beside() -> None:
        load(1)
        run(1)
        run(0)

    def refuses() -> None:
        answered, _ = talk.ask("load", [GARBAGE], len(GARBAGE), model=9, format=fmt)
        if "error" not in answered:
            raise Wrongly("load of bytes that are no model: expected an error, got a result")

    def pipelined() -> None:
        numbers = [talk.send("release", model=0), talk.send("release", model=1)]
        for n in numbers:
            _result(talk.answer(n), "release")

    yield _tried("load", lambda: load(0))
    yield _tried("run", lambda: run(0))
    yield _tried("a second model beside the first", beside)
    yield _tried("run again", lambda: run(0))
    yield _tried("bytes that are no model get an error", refuses)
    yield _tried("two requests under way, release", pipelined)
    yield _tried("an unknown method gets an error", lambda: _unknown(talk))


def _compare(answered: tuple[dict[str, Any], bytes], case: Case, names: list[str]) -> None:
    result, payload = answered
    hold(result, "outputs")
    outputs = result["outputs"]
    if len(outputs) < len(names):
        raise Wrongly(f"outputs: expected {len(names)}, got {len(outputs)}")
    by_name = {o["name"]: o for o in outputs} if all("name" in o for o in outputs) else dict(zip(names, outputs))
    if names[0] not in by_name:
        raise Wrongly(f"outputs: expected the name {names[0]!r}, got {' '.join(map(repr, by_name))}")
    got = messages.value(by_name[names[0]], payload, "output 0")
    assert case.expected is not None
    want = case.expected[0][0].value
    if got.shape != want.shape or str(got.dtype) != str(want.dtype):
        raise Wrongly(f"output 0: expected {want.dtype} {list(want.shape)}, got {got.dtype} {list(got.shape)}")
    if not np.allclose(got, want, equal_nan=True):
        raise Wrongly("output 0: other values than those of this simple op; is the order of bytes or elements another?")


def _unknown(talk: Conversation) -> None:
    answered, _ = talk.ask("no_such_method")
    if "error" not in answered:
        raise Wrongly("expected an error, got a result")


def _ends(command: str) -> None:
    talk = Conversation(command)
    try:
        talk.ask("hello", protocol=messages.PROTOCOL)
        assert talk.process.process.stdin is not None
        talk.process.process.stdin.close()
        talk.process.process.wait(DEADLINE)
    except TimeoutError:
        raise
    except Exception as e:
        raise Wrongly(f"it goes on {DEADLINE:.0f} s after standard input was closed ({type(e).__name__})") from None
    finally:
        talk.close()
