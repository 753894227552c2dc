"""Traits of an instance: plain facts by which it is told what a backend takes.

type:x=f32  rank:x=4  const:w=no  empty:x=no  attr:padding=SAME  attr:axis=omitted  opset=17
"""

from __future__ import annotations

from harness.cases.case import Case

LONGEST = 40  # characters of a value that tells instances apart; longer ones count alike


def traits(case: Case) -> tuple[str, ...]:
    """The traits of a valid case, each "kind:name=value"."""
    inst, schema = case.inst, case.version.schema
    out = [f"opset={inst.opset}", f"outputs={inst.outs}", f"runs={1 + len(inst.reruns)}"]
    for name, given in inst.args.items():
        arg = given
        if isinstance(given, list):
            out.append(f"number:{name}={len(given)}")
            arg = given[0] if given else None  # type: ignore[assignment]
        if arg is None:
            continue
        assert not isinstance(arg, list)
        out += (
            f"type:{name}={arg.dtype}",
            f"rank:{name}={len(arg.shape)}",
            f"const:{name}={_answer(arg.const)}",
            f"empty:{name}={_answer(0 in arg.shape)}",
            f"dynamic:{name}={_answer(arg.dynamic)}",
            f"quantised:{name}={','.join(sorted(arg.quant)) if arg.quant else 'no'}",
        )
    out += [f"operand:{s.name}=omitted" for s in schema.inputs if s.name not in inst.args]
    for name, value in inst.attrs.items():
        if not name.startswith("@"):
            text = str(value)
            out.append(f"attr:{name}={text if len(text) <= LONGEST else 'long'}")
    out += [f"attr:{a}=omitted" for a in schema.attrs if a not in inst.attrs]
    return tuple(out)


def _answer(x: object) -> str:
    return "yes" if x else "no"
