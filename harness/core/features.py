"""Yes/no facts about an instance, in words: coverage counts them, and failure clusters are explained by them.

The engine and the reports must use the same words, so the words are defined here.  The engine counts facts over all
instances (the ``choices`` in the ``cover`` of a batch).  The reports look for the fact that best separates failing
instances from passing ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from harness.core.escape import one_line

_QUOTED = re.compile(r"""(?<!\w)'[^']*'(?!\w)|"[^"]*"|`[^`]*`|\[[^\[\]]*\]""")
_FOLDERS = re.compile(r"(?:[\w.+~-]*/)+(?=[\w.])")
_NUMBERED = re.compile(r"[\w.!@#+-]*\d[\w.!@#+-]*")
_TYPE = re.compile(r"(?:u?int|b?float|double|complex|bf|[fiuc])(?:4|8|16|32|64|128)", re.IGNORECASE)
MOST_PAIRS = 20_000  # pairs of an op version: beyond those none are looked for


def features(instance: dict[str, Any], attrs: Iterable[str] = (), slots: Iterable[str] = ()) -> set[str]:
    """Facts about an instance given in its JSON form (``Instance.to_json``).

    attrs, slots: names the op version has, for "omitted" and "absent" facts; without them only what is there is told.
    Scalars read ``alpha=0.5``; lists are told by length, sign and evenness, since their values hardly ever repeat.
    """
    out: set[str] = set()
    given = instance.get("attrs", {})
    for name, value in given.items():
        _of_attr(out, name, value)
    for name in attrs:
        if name not in given:
            out.add(f"{name} omitted")
    shapes, first = set(), True
    args = instance.get("args", {})
    for slot, arg in args.items():
        many = arg if isinstance(arg, list) else [arg]
        if isinstance(arg, list):
            out.add(f"{slot}: {len(many)} tensors")
        for a in many:
            _of_arg(out, slot, a)
            shapes.add(tuple(a.get("shape", ())))
            if first:
                out.add(f"dtype={a.get('dtype')}")
                first = False
    if len(args) > 1 and len(shapes) > 1:
        out.add("shapes differ")
    for slot in slots:
        if slot not in args:
            out.add(f"{slot}: absent")
    if args and all(a.get("const") for arg in args.values() for a in (arg if isinstance(arg, list) else [arg])):
        out.add("all operands constant")
    if instance.get("reruns"):
        out.add("run again at other extents")
    if instance.get("rule"):
        out.add(f"breaks {instance['rule']}")
    out.add(f"opset={instance.get('opset')}")
    return out


def _of_attr(out: set[str], name: str, value: Any) -> None:
    if value is None or isinstance(value, (bool, int, str)):
        out.add(f"{name}={value}")
        if isinstance(value, int) and not isinstance(value, bool) and value < 0:
            out.add(f"{name} negative")
    elif isinstance(value, float):
        out.add(f"{name}={value:g}")
    elif isinstance(value, list):
        out.add(f"{name}: length {len(value)}")
        if value and all(isinstance(v, (int, float)) for v in value):
            out.add(f"{name}: all {value[0]:g}" if len(set(value)) == 1 else f"{name}: uneven")
            if min(value) < 0:
                out.add(f"{name}: has negative")
    elif isinstance(value, dict) and "dtype" in value:
        out.add(f"{name}={value['dtype']}")
    else:
        out.add(f"{name} given")


def _of_arg(out: set[str], slot: str, a: dict[str, Any]) -> None:
    shape = a.get("shape", [])
    out.add(f"{slot}: rank {len(shape)}")
    if 0 in shape:
        out.add(f"{slot}: empty axis")
    if 1 in shape:
        out.add(f"{slot}: axis of 1")
    if a.get("const"):
        out.add(f"{slot}: constant")
        if a.get("encoding"):
            out.add(f"{slot}: constant in {a['encoding']}")
    if a.get("dynamic"):
        out.add(f"{slot}: dynamic")
    if a.get("quant"):
        out.add(f"{slot}: quantised per {'channel' if len(a['quant'].get('scale', [0])) > 1 else 'tensor'}")
    if "values" not in a and a.get("recipe"):
        out.add(f"{slot}: data {a['recipe'].split(':')[0]}")


def pattern_of(message: str) -> str:
    """The part of a backend's message that names the kind of failure: a ``*`` stands for what is quoted or in brackets,
    and for each word with a digit that is no element type.  Folders are left out."""
    text = _FOLDERS.sub("", _QUOTED.sub("*", one_line(message)))
    text = _NUMBERED.sub(lambda m: m[0] if _TYPE.fullmatch(m[0]) else "*", text)
    return re.sub(r"\*(?:[\s,;:|]*\*)+", "*", text)[:300]


class Pairs:
    """The number of pairs of facts that some instance has both of.

    Bits are quicker than a set of all pairs.  Counting ends once there are ``MOST_PAIRS``."""

    def __init__(self) -> None:
        self.count = 0
        self._bits: dict[str, int] = {}  # fact -> a bit of its own
        self._beside: dict[str, int] = {}  # fact -> the bits of those met with it, and its own

    def meet(self, facts: Collection[str]) -> bool:
        """Take in the facts of an instance; was one of their pairs new?"""
        if self.count >= MOST_PAIRS:
            return False
        bits, beside, met, twice = self._bits, self._beside, 0, 0
        for f in facts:
            bit = bits.get(f)
            if bit is None:
                bit = bits[f] = beside[f] = 1 << len(bits)
            met |= bit
        for f in facts:
            new = met & ~beside[f]
            if new:
                beside[f] |= met
                twice += new.bit_count()  # once from each side
        self.count += twice // 2
        return twice > 0
