"""What a backend declares: checked once, at the greeting of its worker, and typed from then on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import FormatError
from harness.workers.info import ATTRIBUTES, FACTS, BackendInfo, declared
from harness.workers.worker import Server
from harness.workers.worker.backend import DECLARED

HARNESS = Path(__file__).resolve().parents[2] / "harness"


class Plain:
    name, formats = "plain", ("toy",)

    def version(self) -> str:
        return "1.0"


def read(members: dict[str, Any]) -> BackendInfo:
    """What the host reads from the greeting of a backend with more members than it must have."""
    backend = type("Backend", (Plain,), members)()
    return declared("mine", json.loads(json.dumps(Server(backend).greeting())))


def test_defaults_of_a_backend_that_declares_nothing_more():
    info = read({})
    assert (info.name, info.version, info.formats, info.family) == ("mine", "1.0", ("toy",), "plain")
    assert (info.opset, info.oldest_opset, info.dtypes, info.validates) == (None, None, None, True)
    assert (info.pack_size("toy"), info.recycle, info.more) == (1, None, {})
    assert not info.beyond(99)
    assert not info.below(1)


def test_claims_are_read():
    info = read({"opsets": (7, 23), "dtypes": {"bf16"}, "validates": False})
    assert (info.oldest_opset, info.opset, info.validates, info.dtypes) == (7, 23, False, frozenset({"bf16"}))
    assert info.beyond(24)
    assert not info.beyond(23)
    assert info.below(6)
    assert not info.below(7)
    assert not info.beyond("ios17")
    assert not info.below("ios15")


def test_info_overrides_the_attributes_and_keeps_other_facts():
    facts = {"opset": 21, "ir": 10, "target_dialect": "toy", "known_as": "other", "leaves_to": "rest"}
    info = read({"opsets": (7, 23), "info": lambda self: facts})
    assert (info.oldest_opset, info.opset, info.more) == (7, 21, {"ir": 10})
    assert (info.target_dialect, info.known_as, info.leaves_to) == ("toy", ("other",), "rest")
    assert info.told()["info"] == {"oldest_opset": 7, "claims": {"opsets": [7, 23]}, **facts, "known_as": ["other"]}


def test_pack_may_depend_on_the_format():
    info = read({"pack": {"toy": 4}})
    assert (info.pack_size("toy"), info.pack_size("onnx")) == (4, 1)


@pytest.mark.parametrize(
    ("attribute", "value", "text"),
    [
        ("formats", "toy", "expected names such as ('onnx',), got \"toy\""),
        ("formats", (), "expected names such as"),
        ("family", 3, "expected a string, got 3"),
        ("opsets", (23,), "expected (oldest, newest), two positive numbers or two names, got [23]"),
        ("opsets", (23, 7), "expected (oldest, newest), two positive numbers or two names, got [23, 7]"),
        ("opsets", ("7", "23"), "expected (oldest, newest)"),
        ("opsets", 23, "expected (oldest, newest), two positive numbers or two names, got 23"),
        ("dtypes", "f32", 'expected a list, got "f32"'),
        ("dtypes", ("float32",), "expected a name among"),
        ("flushes", ("float32",), "expected a name among"),
        ("isolate_dtypes", ("half",), "expected a name among"),
        ("acc", ("f16",), 'expected {dtype: dtype}, got ["f16"]'),
        ("acc", {"f16": "float"}, "expected {dtype: dtype}"),
        ("unused", "avx2", 'expected a list, got "avx2"'),
        ("pack", 0, "expected a positive number, or one for each format, got 0"),
        ("pack", True, "expected a positive number, or one for each format, got true"),
        ("pack", {"toy": "many"}, "expected a positive number, or one for each format"),
        ("recycle", 1.5, "expected a positive number or None, got 1.5"),
        ("validates", "no", 'expected True or False, got "no"'),
        ("forks", "no", 'expected True or False, got "no"'),
    ],
)
def test_an_attribute_of_another_type_is_one_clear_line(attribute: str, value: Any, text: str):
    with pytest.raises(FormatError) as e:
        read({attribute: value})
    assert re.match(rf"{attribute}: (0: )?{re.escape(text)}", str(e.value))
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_of_another_type_is_one_clear_line(fact: str):
    with pytest.raises(FormatError, match=rf"^info\(\): {fact}: expected [^\n]*, got 2.5$"):
        read({"info": lambda self: {fact: 2.5}})


@pytest.mark.parametrize("value", [object(), {1: {2j}}, float])
def test_a_value_that_cannot_be_sent_is_reported(value: object):
    with pytest.raises(TypeError, match=r"^acc: expected a value that JSON can say, got "):
        read({"acc": value})


def test_the_worker_sends_what_the_host_checks():
    assert set(DECLARED) == set(ATTRIBUTES)


def test_only_backend_info_reads_the_greeting():
    """The rest of the harness has the typed record."""
    readers = {
        str(p.relative_to(HARNESS))
        for p in HARNESS.rglob("*.py")
        if re.search(r"\bhello\b|\bgreeting\b", p.read_text(encoding="utf-8"))
        and "runner" not in str(p.relative_to(HARNESS))  # a runner says hello in a protocol of its own
    }
    assert readers == {
        "workers/info.py",
        "workers/process.py",
        "workers/worker/backend.py",
        "workers/worker/serving.py",
        "workers/worker/zygote.py",
    }
