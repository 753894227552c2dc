"""Function bodies on the runtimes: the body in the op's place must give what the op means there, too.

``suites.onnx.test_bodies`` holds the law for our interpreter; here ONNX Runtime and ``onnx.reference`` run the same
expanded models, under the same bounds.  A body that says something else than its op (``bodies.toml``) says it here as
well, so those are left out; what a runtime does to a body on top of that is listed below it, by backend.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.core.outcome import Model, Status
from harness.declare import OpVersion
from harness.ledger.releases import in_releases
from harness.workers.pool import BackendHandle
from harness.workers.wire import Job
from suites.meta.runtimes import running
from suites.onnx.test_bodies import BODIES, LISTED, ON_BACKENDS, close, expanded_cases

NAMES = ("onnxruntime", "onnxruntime-all", "onnx-reference")


@pytest.fixture(scope="module", params=NAMES)
def handle(request: pytest.FixtureRequest) -> Iterator[BackendHandle]:
    with running(request.param) as h:
        yield h


def differences(h: BackendHandle, v: OpVersion, n: int) -> tuple[int, list[str]]:
    """How many bodies gave values, and what is wrong with those that differ or are refused."""
    cases = list(expanded_cases(v, n))
    jobs = []
    for _, body, _, fed, outputs in cases:
        model = Model("onnx", body, [[(k, k, None) for k in fed]], [outputs])
        jobs.append(Job(model, [[list(fed.values())]]))
    seen, bad = 0, []
    for (text, _, expected, _, _), result in zip(cases, h.run(jobs)):
        outcome = result.outcomes[0][0]
        if outcome.status is Status.UNSUPPORTED or above(h, v):
            continue
        if outcome.status is not Status.VALUE:
            bad.append(f"{outcome.status.value}: {outcome.message}\n{text}")
            continue
        seen += 1
        outs: list[Any] = outcome.outputs or []
        if not all(close(g, e) for g, e in zip(outs, expected)):
            bad.append(text)
    return seen, bad


def above(h: BackendHandle, v: OpVersion) -> bool:
    """Is the model of an opset that the runtime does not know?"""
    top = h.info.opset
    return isinstance(top, int) and v.opsets[-1] > top


def is_listed(h: BackendHandle, v: OpVersion) -> bool:
    """Does ``bodies.toml`` list the body for this release of the backend?"""
    entry = ON_BACKENDS.get(h.spec.name.removesuffix("-all"), {}).get(v.op, {}).get(str(v.version))
    if not isinstance(entry, dict):
        return entry is not None
    return in_releases(h.info.version, entry["versions"])


@pytest.mark.parametrize("v", BODIES, ids=lambda v: f"{v.op}-{v.version}")
def test_a_body_gives_what_its_op_means(handle: BackendHandle, v: OpVersion) -> None:
    if str(v.version) in LISTED.get(v.op, {}):
        return  # the body itself says something else, on every way
    listed = is_listed(handle, v)
    seen, bad = differences(handle, v, 600 if listed else 12)  # a conversion has 625 pairs of types
    if listed:
        assert bad or not seen, f"listed in bodies.toml for {handle.spec.name}, but the body agrees"
    else:
        assert not bad, bad[0]
