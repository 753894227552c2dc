"""Laws over everything that is declared: one test a law and dialect, all violations listed."""

from __future__ import annotations

import importlib
import json
import pkgutil

import numpy as np
import pytest

from harness.cases.case import Case
from harness.core.dtypes import BY_NAME, of
from harness.core.errors import RuleError, Unsupported
from harness.core.instance import Instance
from harness.declare import OpVersion, ShapeMismatch, registry
from harness.declare.invalid import OF_SCHEMA, draw_invalid, invalid_generators_of
from harness.declare.semantics import Semantics
from harness.declare.validation import validation_error
from harness.generate.draw_engines import Prng, Replay, case_seed
from harness.generate.recipes import arrays_of

CASES = 6
PARTS = {"fmod", "batch_norm_training", "crop_resize"}  # meanings that others choose among or put together
DIALECTS = registry.names()


def report(bad: list[str]) -> None:
    assert not bad, f"{len(bad)} violations:\n" + "\n".join(bad[:25])


def versions(name: str) -> list[OpVersion]:
    return list(registry.dialect(name).versions.values())


@pytest.mark.parametrize("name", DIALECTS)
def test_a_case_is_replayed_by_its_choices_and_survives_json(name: str) -> None:
    bad = []
    for v in versions(name):
        for i in range(CASES):
            try:
                engine = Prng(case_seed(3, v.key, i))
                inst = v.draw(engine, v.opsets[i % len(v.opsets)])
                again = v.draw(Replay(engine.choices), inst.opset)
                if again.dumps() != inst.dumps():
                    bad.append(f"{v.key}: replay differs")
                if Instance.from_json(json.loads(inst.dumps())).dumps() != inst.dumps():
                    bad.append(f"{v.key}: JSON round trip differs")
            except Exception as e:
                bad.append(f"{v.key} case {i}: {type(e).__name__}: {e}")
                break
    report(bad)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_reference_takes_every_valid_instance_and_keeps_its_promises(name: str) -> None:
    """No RuleError, no exception; the annotated shapes are what comes out; the types are ones the schema admits."""
    bad = []
    for v in versions(name):
        for i in range(CASES):
            inst = v.draw(Prng(case_seed(4, v.key, i)))
            try:
                call = v.dialect.call_of(inst, arrays_of(inst))
                results = v.evaluate(call)
                bad += [f"{v.key} case {i}: {text}" for text in _promises(v, call, results)]
            except (RuleError, ShapeMismatch) as e:
                bad.append(f"{v.key} case {i}: refuses its own valid instance: {e}: {inst.dumps()[:200]}")
            except Exception as e:
                bad.append(f"{v.key} case {i}: {type(e).__name__}: {e}")
                break
    report(bad)


def _promises(v: OpVersion, call, results) -> list[str]:
    out = []
    m = v.meaning
    if m is not None and v.entry.evaluation is None:
        tensors, params = v.decode(call)
        env = m.bind(tensors, params)
        m.check_rules(env)
        shapes = m.result_shapes(env)
        if shapes is not None and v.entry.spelling.out is None:
            for i, (want, r) in enumerate(zip(shapes, results)):
                if want is not None and isinstance(r.value, np.ndarray) and r.value.shape != want:
                    out.append(f"output {i} has shape {r.value.shape}, annotated {want}")
    slots = v.schema.outputs
    for i, r in enumerate(results):
        if not isinstance(r.value, np.ndarray) or not slots:
            continue
        allowed = v.schema.dtypes(slots[min(i, len(slots) - 1)].element)
        allowed += tuple(BY_NAME[n] for n in v.schema.extra.get("results", ()))  # whatever the operands have
        if allowed and of(r.value).np not in {d.np for d in allowed}:
            out.append(f"output {i} is {of(r.value)}, the schema admits {' '.join(map(str, allowed))}")
    return out


@pytest.mark.parametrize("name", DIALECTS)
def test_an_invalid_instance_breaks_its_rule_and_nothing_else(name: str) -> None:
    """It names its rule, differs from the valid instance of the same draw, and is drawn the same way again."""
    bad = []
    for v in versions(name):
        for rule in invalid_generators_of(v):
            drawn = 0
            for i in range(64):
                try:
                    inst = draw_invalid(v, rule, Prng(case_seed(5, v.key, i)))
                except Exception as e:
                    bad.append(f"{v.key} {rule}: {type(e).__name__}: {e}")
                    break
                if inst is None:
                    continue
                drawn += 1
                if inst.rule != rule:
                    bad.append(f"{v.key} {rule}: names {inst.rule}")
                break
            else:
                if not drawn:
                    bad.append(f"{v.key} {rule}: no draw in 64 could break it")
    report(bad)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_reference_refuses_what_breaks_a_rule(name: str) -> None:
    """Else a draw may be valid after all, and a backend that answers it right be blamed."""
    bad = []
    for v in versions(name):
        for rule in invalid_generators_of(v):
            if rule.startswith(OF_SCHEMA) or rule in v.entry.checks.unseen:
                continue
            for i in range(3):
                inst = draw_invalid(v, rule, Prng(case_seed(8, v.key, i)))
                if inst is None:
                    continue
                inst.rule = None
                if validation_error(v, inst) is None and _taken(v, inst):
                    bad.append(f"{v.key} {rule} case {i}: {inst.dumps()[:200]}")
    report(bad)


def _taken(v: OpVersion, inst: Instance) -> bool:
    """Does the reference give results?"""
    case = Case(v, inst, 0)
    try:
        for arrays in case.draws:
            v.check(v.dialect.call_of(inst, arrays, v))
    except Exception:  # a raw error is a refusal, if no good one
        return False
    return case.expected is not None


@pytest.mark.parametrize("name", DIALECTS)
def test_every_entry_cites_its_source(name: str) -> None:
    report(
        [
            f"{v.key}: no source"
            for v in versions(name)
            if not (v.entry.source or (v.meaning is not None and v.meaning.source))
        ]
    )


def test_every_meaning_is_some_ops() -> None:
    used = {id(v.meaning) for name in DIALECTS for v in versions(name)}
    unused = set()
    for m in pkgutil.walk_packages(importlib.import_module("suites.semantics").__path__, "suites.semantics."):
        if not m.name.rpartition(".")[2].startswith("test_"):
            of_module = vars(importlib.import_module(m.name)).values()
            unused |= {x.name for x in of_module if isinstance(x, Semantics) and id(x) not in used}
    assert unused == PARTS


@pytest.mark.parametrize("family", ["elementwise", "indexing", "movement", "norm"])
def test_a_family_offers_the_meanings_of_its_modules(family: str) -> None:
    """And no two modules have a public name for two things of their own, of which it could offer one alone."""
    package = importlib.import_module(f"suites.semantics.{family}")
    seen: dict[str, str] = {}
    hidden, twice = [], []
    for m in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if m.name.rpartition(".")[2] in (
            "common",
            "tables",
        ):  # helpers; meanings that one dialect alone takes from there
            continue
        for public, value in vars(importlib.import_module(m.name)).items():
            if not isinstance(value, Semantics) or public.startswith("_") or value.fn.__module__ != m.name:
                continue
            if seen.setdefault(public, m.name) != m.name:
                twice.append(f"{public}: {seen[public]} and {m.name}")
            if getattr(package, public, None) is not value:
                hidden.append(f"{m.name}.{public}")
    assert seen
    report(hidden + twice)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_version_has_its_opsets_and_a_family(name: str) -> None:
    report([f"{v.key}: no opset" for v in versions(name) if not v.opsets])
    files = importlib.import_module(f"{registry.dialect(name).package}.ops").__path__
    assert {v.family for v in versions(name)} == {m.name for m in pkgutil.iter_modules(files)}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_model_means_what_its_instance_means(name: str) -> None:
    """Built, parsed again and run by the interpreter, a model gives the bits that the instance's evaluation gives."""
    bad = []
    d = registry.dialect(name)
    for v in versions(name):
        for i in range(3):
            inst = v.draw(Prng(case_seed(6, v.key, i)))
            try:
                arrays = arrays_of(inst)
                model = d.build([inst], [arrays])
                feeds = {n: arrays[s] if k is None else arrays[s][k] for n, s, k in model.inputs[0]}
                got = d.run_model(model.data, feeds)
                due = d.evaluate(inst, arrays)
                if any(e.error.random for e in due):
                    continue
                want = [e.value for e, n in zip(due, model.outputs[0], strict=True) if n]
                bad += [
                    f"{v.key} case {i}: output {k} differs"
                    for k, (a, b) in enumerate(zip(got, want))
                    if not _same(a, b)
                ]
            except Unsupported:
                continue
            except Exception as e:
                bad.append(f"{v.key} case {i}: {type(e).__name__}: {str(e)[:200]}")
                break
    report(bad)


def _same(a, b) -> bool:
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        return isinstance(a, (list, tuple)) and len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b))
    if a is None or b is None:
        return a is b
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "OUS":  # a string in a file is bytes
        return a.shape == b.shape and all(_text(x) == _text(y) for x, y in zip(a.ravel(), b.ravel()))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _text(x) -> str:
    return x.decode() if isinstance(x, bytes) else str(x)
