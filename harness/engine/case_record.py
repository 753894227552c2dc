"""The "case" record: what is kept of a verdict that is more than agreement, and what a person is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.backends import registry as backends
from harness.cases.case import Case, draw_case
from harness.cases.reruns import at_run
from harness.cases.result import Result
from harness.compare import blame
from harness.core.escape import one_line, shell, visible
from harness.core.outcome import Verdict
from harness.workers.spec import HERE_ONLY, Place

NEIGHBOURS = (
    "neighbours.json"  # the instances of a model in which one goes wrong that is right alone, and of models before
)


def notation(result: Result) -> str:
    """The instance in its dialect's text, the runs after the first one, and the text of the dialect in which the
    backend was asked."""
    dialect, inst = result.case.version.dialect, result.case.inst
    text = dialect.notation(inst)
    for r in range(1, 1 + len(inst.reruns)):
        text += f"\nrun {r + 1} of the same loaded model:\n{dialect.notation(at_run(inst, r))}"
    if result.asked is None:
        return text
    return f"{text}\nasked as\n{result.asked.version.dialect.notation(result.asked.inst)}"


def address(case: Case, seed: int) -> str | None:
    """``onnx/Conv/11@17#seed.index``: enough to draw the case again on any machine; None for one that is not drawn so
    (a saved instance, one run of several, a valid instance in the place of an invalid one)."""
    if case.index < 0 or draw_case(case.version, case.inst.opset, seed, case.index, lazy=True).inst.id != case.inst.id:
        return None
    return f"{case.version.key}@{case.inst.opset}#{seed}.{case.index}"


def replay_line(result: Result, folder: Path | None, seed: int, place: Place = HERE_ONLY) -> str:
    """One line that runs the case again, in the same place; empty where neither a folder nor an address tells it."""
    name = NEIGHBOURS if result.neighbours or result.prior_models else "instance.json"
    what = str(folder / name) if folder is not None else address(result.case, seed)
    if what is None:
        return ""
    return f"opconform replay {shell(what)} --backend {shell(backends.asked(result.backend))}{place.options}"


def blank(case: Case, **facts: Any) -> dict[str, Any]:
    """The "case" record of an instance of which nothing is known but the facts given."""
    inst = case.inst
    return {
        "t": "case",
        "id": inst.id,
        "key": case.version.key,
        "opset": inst.opset,
        "backend": "",
        "dtype": case.dtype_name,
        "verdict": "",
        "status": "",
        "phase": "",
        "message": "",
        "rule": inst.rule,
        "instance": inst.to_json(),
        "minimal": None,
        "notation": case.version.dialect.notation(inst) if inst.args else "",
        "output": 0,
        "class": "",
        "formula": "",
        "kind": "",
        "diff": {},
        "votes": {},
        "blame": "",
        "neighbours": [],
        "prior_models": [],
        "nondeterministic": "",
        "known": None,
        "ambiguity": None,
        "replay": "",
        "folder": None,
        "cluster": None,
        **facts,
    }


def record(
    result: Result,
    votes: dict[str, str],
    small: Result | None = None,
    folder: Path | None = None,
    seed: int = 0,
    place: Place = HERE_ONLY,
    replay: str | None = None,
) -> dict[str, Any]:
    """The "case" record of a verdict; numbers are those of the smaller instance where there is one.  replay: the line
    that runs it again, where the caller knows it."""
    shown = small or result
    j, outcome = shown.judgement, result.outcome
    numbers: dict[str, Any] = (
        {}
        if j is None
        else {
            "output": j.output,
            "class": j.klass,
            "formula": j.formula,
            "kind": j.kind,
            "diff": j.diff(),
        }
    )
    return blank(
        result.case,
        backend=result.backend,
        verdict=result.verdict.value,
        status=outcome.status.value,
        phase=outcome.phase,
        message=outcome.message,
        votes=votes,
        blame=blame(votes, backends.family).text,
        minimal=shown.case.inst.to_json() if small is not None else None,
        notation=notation(shown),
        neighbours=[c.version.dialect.notation(c.inst) for c in result.neighbours],
        prior_models=[[c.version.dialect.notation(c.inst) for c in cases] for cases in result.prior_models],
        nondeterministic=shown.nondeterministic,
        known=result.known,
        ambiguity=result.ambiguity,
        folder=None if folder is None else str(folder),
        replay=replay_line(result, folder, seed, place) if replay is None else replay,
        **numbers,
    )


def paragraph(rec: dict[str, Any], version: str = "") -> str:
    """A failure in words, for the terminal: what, where, which rule, by how much, the instance, how to run it again."""
    head = f"{rec['key']} at opset {rec['opset']}, {rec['backend']}" + (f" {version}" if version else "")
    lines = [f"{head}: {rec['verdict'].replace('_', ' ')}"]
    diff = rec.get("diff") or {}
    if rec["verdict"] == Verdict.MISMATCH.value:
        lines.append(f"  output {rec['output']}: {rec.get('kind') or 'value'}; rule {rec['formula'] or rec['class']}")
        if diff.get("count"):
            lines.append(f"  {diff['count']} of {diff['size']} elements{_by_how_much(diff)}")
        if rec.get("kind") in ("shape", "dtype") and diff.get("got_dtype") is not None:
            got = f"{diff['got_dtype']}{diff['got_shape']}"
            lines.append(f"  expected {diff['dtype']}{diff['shape']}, got {got}")
        elif diff.get("detail"):
            lines.append(f"  {diff['detail']}")
        for e in diff.get("elements", ())[:2]:
            lines.append(
                f"  {e['why']} at {e['index']}: expected {e['expected']} ({e['expected_hex']}), "
                f"got {e['actual']} ({e['actual_hex']})"
            )
        lines.append(f"  votes: {rec.get('blame') or blame(rec['votes'], backends.family).text}")
    elif rec["rule"]:
        lines.append(f"  the instance breaks the rule {rec['rule']}, which the backend must refuse")
    if rec["message"]:
        lines.append(f"  {rec['phase'] or 'message'}: {one_line(rec['message'])[:500]}")
    if rec.get("nondeterministic"):
        lines.append(f"  {rec['nondeterministic']}")
    lines += ["  | " + x for x in rec["notation"].splitlines()]
    if rec.get("neighbours"):
        lines.append(f"  right alone, wrong in one model of {len(rec['neighbours'])}:")
        lines += ["  & " + x for text in rec["neighbours"] for x in text.splitlines()]
    if rec.get("prior_models"):
        lines.append(f"  right in a fresh process, wrong in one that has served {len(rec['prior_models'])} before:")
        lines += ["  < " + x for model in rec["prior_models"] for text in model for x in text.splitlines()]
    if rec["folder"]:
        lines.append(f"  folder: {rec['folder']}")
    if rec["replay"]:
        lines.append(f"  {rec['replay']}")
    return "\n".join(map(visible, lines))


def _by_how_much(diff: dict[str, Any]) -> str:
    """Nothing, where there are no distances: NaN, infinities, strings."""
    told = (("max_ulp", "largest error {:.4g} ulp"), ("factor", "smallest passing tolerance {:.4g} x the bound"))
    parts = [text.format(diff[name]) for name, text in told if isinstance(diff.get(name), (int, float))]
    return "; " + ", ".join(parts) if parts else ""
