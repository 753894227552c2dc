"""The worker and its pool: right outcomes, nothing lost, nothing twice, whatever a backend does."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from harness.core.outcome import Model, Status, TypeOnly
from harness.workers import process, worker
from harness.workers.pool import BackendHandle
from harness.workers.process import Zygote
from harness.workers.spec import BackendError, Place, Spec
from harness.workers.wire import Job
from harness.workers.worker import arrays

ROOT = Path(__file__).resolve().parents[2]
MODULE = "suites.meta.bad_backends"


def handle(cls="Toy", **kw):
    spec = Spec(
        kw.pop("name", cls.lower()), cls, module=MODULE, memory=kw.pop("memory", 4 << 30), kwargs=kw.pop("kwargs", {})
    )
    return BackendHandle(spec, **kw)


def model_of(deeds, names=None, say=False):
    nodes, ins, outs = [], [], []
    for i, deed in enumerate(deeds):
        nodes.append({"do": deed, "in": [f"x{i}", f"y{i}"], "out": f"z{i}", "node": f"n{i}", "say": say})
        ins.append([(f"x{i}", "x", None), (f"y{i}", "y", None)])
        outs.append([f"z{i}"])
    data = json.dumps(nodes).encode()
    return Model("toy", data, ins, outs, {"nodes": [[f"n{i}"] for i in range(len(deeds))]})


def job_of(deeds, sets=1, tag=None, say=False, sign=lambda r, k: 1):
    feeds = [
        [
            [np.full((2, 3), sign(r, k) * (k + 1), np.float32), np.float32(10 * r) * np.ones((3,), np.float32)]
            for k in range(len(deeds))
        ]
        for r in range(sets)
    ]
    return Job(model_of(deeds, say=say), feeds, lambda idx: model_of([deeds[i] for i in idx], say=say), tag)


def check_values(result, deeds, sets=1, sign=lambda r, k: 1, skip=()):
    for r in range(sets):
        for k in range(len(deeds)):
            if k in skip or (r, k) in skip:
                continue
            o = result.outcomes[r][k]
            assert o.status is Status.VALUE, (r, k, o)
            np.testing.assert_array_equal(o.outputs[0], np.full((2, 3), sign(r, k) * (k + 1) + 10 * r, np.float32))


def test_plain_jobs_return_every_outcome():
    with handle() as h:
        results = h.run(job_of(["add"] * 5, sets=3, tag=i) for i in range(40))
        assert [r.job.tag for r in results] == list(range(40))
        for r in results:
            check_values(r, ["add"] * 5, sets=3)
        assert h.stats["deaths"] == 0
        assert h.info.version == "1.0"
        assert h.info.opset == 3
        assert h.info.pack == 8


CRASHES = {
    "segv": "SIGSEGV",
    "abort": "SIGABRT",
    "fpe": "SIGFPE",
    "exit": "exited with code 3",
    "memory": "out of memory",
    "crash-at-load": "SIGSEGV",
    "unspeakable": "not JSON serializable",
}


@pytest.mark.parametrize("deed", CRASHES)
def test_a_crash_loses_no_other_instance(deed):
    deeds = ["add"] * 13
    deeds[6] = deed
    with handle() as h:
        jobs = [job_of(["add"] * 4), job_of(deeds, sets=2), job_of(["add"] * 4)]
        a, b, c = h.run(jobs)
        check_values(a, jobs[0].model.outputs)
        check_values(c, jobs[2].model.outputs)
        check_values(b, deeds, sets=2, skip=(6,))
        for r in range(2):
            o = b.outcomes[r][6]
            assert o.status is Status.CRASHED, o
            assert CRASHES[deed] in o.message, o
            # an answer that cannot be sent is of neither phase: the culprit is found by trying each alone
            assert deed == "unspeakable" or o.phase == ("load" if deed == "crash-at-load" else "run")
    if deed == "abort":
        assert "std::bad_thing" in b.outcomes[0][6].message  # the runtime's last words


def running(group):
    """Processes of a group that have not ended."""
    stats = [p.read_text().rpartition(")")[2].split() for p in Path("/proc").glob("[0-9]*/stat") if p.exists()]
    return [s for s in stats if s[2] == str(group) and s[0] not in "ZX"]


LEAVES = {
    "leaves-and-dies": "SIGABRT",
    "closes": "SIGKILL",
    "scribbles": "its answer cannot be read",
    "real-time": "killed by 40",
}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("deed", LEAVES)
def test_a_process_that_leaves_its_socket_to_others_is_found(deed):
    """What holds its socket, what still runs without it and what was written into it keep nobody waiting."""
    deeds = ["add", deed, "add"]
    with handle(deadline=60.0) as h:
        (result,) = h.run([job_of(deeds)])
        group = h.zygote.pid
        check_values(result, deeds, skip=(1,))
        o = result.outcomes[0][1]
        assert o.status is Status.CRASHED, o
        assert LEAVES[deed] in o.message, o
    wait = time.monotonic() + 5
    while running(group) and time.monotonic() < wait:
        time.sleep(0.01)
    assert not running(group)  # nothing that it forked is left


def ended(pid):
    """Has a process ended, within some time?"""
    wait = time.monotonic() + 10
    while time.monotonic() < wait:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def left_behind(h):
    """The number of a process that its backend left in a session of its own."""
    (result,) = h.run([job_of(["add", "leaves-a-session"])])
    pid = int(result.outcomes[0][1].outputs[0])
    assert os.getsid(pid) != os.getsid(h.zygote.pid)
    return pid


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(("cls", "killed"), [("Toy", False), ("Toy", True), ("NoFork", False), ("NoFork", True)])
def test_a_session_of_its_own_outlives_no_handle(cls, killed):
    with handle(cls) as h:
        pid = left_behind(h)
        if killed:
            os.kill(h.zygote.process.pid, signal.SIGKILL)
    assert ended(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("cls", ["Toy", "NoFork"])
def test_a_session_of_its_own_outlives_no_host(cls):
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "import os, suites.meta.test_workers as t\n"
                f"h = t.handle({cls!r})\n"
                "print(t.left_behind(h), flush=True)\n"
                "os.kill(os.getpid(), 9)"
            ),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert told.returncode == -signal.SIGKILL, told.stderr
    assert ended(int(told.stdout))


def test_a_long_start_is_reported(monkeypatch, caplog):
    monkeypatch.setattr(process, "LONG_START", 0.2)
    monkeypatch.setattr(process, "START_LIMIT", 2.0)
    began = time.monotonic()
    with pytest.raises(BackendError, match=r"sleeps: .* gave no sign of life within 2 s"):
        handle("Sleeps", name="sleeps").start()
    assert time.monotonic() - began < 15
    assert [r.getMessage() for r in caplog.records] == ["sleeps: still starting after 0 s, is given up after 2 s"]


def test_a_fork_that_returns_answers_once():
    deeds = ["add", "forks-and-returns", "add"]
    with handle() as h:
        for result in h.run(job_of(deeds, sets=2) for _ in range(5)):
            check_values(result, deeds, sets=2)
        assert not h.stats["deaths"]


def test_what_a_backend_does_to_its_process_stays_there():
    with handle("Lawless") as h:
        (result,) = h.run([job_of(["add", "segv", "add"])])
        check_values(result, ["add"] * 3, skip=(1,))
        assert result.outcomes[0][1].status is Status.CRASHED
        assert "SIGSEGV" in result.outcomes[0][1].message


def test_a_backend_that_cannot_be_started_again_has_crashed(tmp_path):
    with handle("StartsOnce", kwargs={"lock": str(tmp_path / "lock")}) as h:
        results = h.run([job_of(["add", "segv", "add"]), job_of(["add"])])
        outcomes = [o for r in results for o in r.outcomes[0]]
        assert {o.status for o in outcomes} == {Status.CRASHED}
        assert len(outcomes) == 4
        assert "cannot be started again: FileExistsError: " in outcomes[-1].message
        assert h.info.version == "1.0"
        with h.another() as spare:
            assert spare.info == h.info
            assert spare.run([job_of(["add"])])[0].outcomes[0][0].phase == "start"


@pytest.mark.parametrize("deed", ["short", "vast", "retyped"])
def test_an_array_that_lies_of_itself_is_taken_for_what_it_is(deed):
    with handle() as h:
        (result,) = h.run([job_of(["add", deed, "add"], sets=2)])
        check_values(result, ["add"] * 3, sets=2)


@pytest.mark.parametrize("deed", ["hang", "spin"])
def test_a_hang_is_found_by_its_deadline(deed):
    deeds = ["add", deed, "add"]
    with handle(deadline=0.2) as h:
        (result,) = h.run([job_of(deeds)])
        check_values(result, deeds, skip=(1,))
        assert result.outcomes[0][1].status is Status.TIMED_OUT
        assert "no answer within" in result.outcomes[0][1].message


def test_what_is_known_to_hang_is_not_waited_for_as_long():
    """It has a part of the deadline; the message tells the time that it was given."""
    with handle(deadline=16.0) as h:
        known, told = (h.run([replace(job_of([deed]), hangs=True)])[0].outcomes[0][0] for deed in ("spin", "add"))
        assert known.status is Status.TIMED_OUT
        assert told.status is Status.VALUE
        assert float(re.search(r"within ([\d.]+) s", known.message)[1]) < 16.0


def test_waiting_for_a_processor_does_not_count(monkeypatch):
    """The same nap passes for a process that had no processor meanwhile, up to a few times the deadline."""
    deeds = ["add", "nap", "add"]
    with handle(deadline=0.4) as h:
        (slept,) = h.run([job_of(deeds)])
        assert slept.outcomes[0][1].status is Status.TIMED_OUT
    monkeypatch.setattr(Zygote, "starved_seconds", lambda self, pid: time.monotonic())
    with handle(deadline=0.4) as h:
        (starved,) = h.run([job_of(deeds)])
        check_values(starved, deeds)
    with handle(deadline=0.1) as h:
        (hangs,) = h.run([job_of(["hang"])])
        assert hangs.outcomes[0][0].status is Status.TIMED_OUT


@pytest.mark.parametrize("cls", ["Toy", "NoFork"])
def test_a_backend_that_breaks_numpy_costs_its_own_instance_alone(cls):
    """An error of the harness inside a worker is asked again in a fresh process."""
    jobs = [job_of(["add"] * 3, sets=2, tag=i) for i in range(20)]
    jobs[4] = job_of(["add", "breaks-numpy", "add"], sets=2, tag=4)
    with handle(cls) as h:
        results = h.run(jobs)
    for i, result in enumerate(results):
        check_values(result, ["add"] * 3, sets=2, skip=(1,) if i == 4 else ())
        assert not result.unblamed
    assert {row[1].status for row in results[4].outcomes} <= {Status.HARNESS_ERROR}


def test_a_repeated_harness_error_is_retried_few_times():
    with handle("ReturnsList") as h:
        results = h.run(job_of(["add"]) for _ in range(60))
        assert {r.outcomes[0][0].status for r in results} == {Status.HARNESS_ERROR}
        assert h.stats["spawns"] < 20


def test_many_culprits_at_once():
    deeds = ["add", "segv", "add", "abort", "raise", "add", "unsupported", "add", "refuse-at-load", "add"]
    want = {1: Status.CRASHED, 3: Status.CRASHED, 4: Status.REJECTED, 6: Status.UNSUPPORTED, 8: Status.REJECTED}
    with handle() as h:
        (result,) = h.run([job_of(deeds, sets=2)])
        check_values(result, deeds, sets=2, skip=tuple(want))
        for r in range(2):
            assert {k: result.outcomes[r][k].status for k in want} == want
        assert result.outcomes[0][4].message == "index 7 is out of bounds"
        assert result.outcomes[0][6].message == "no kernel for this dtype"


def test_a_message_that_names_the_node_saves_the_bisection():
    deeds = ["add"] * 64
    deeds[37] = "refuse-at-load"
    with handle() as h:
        (named,) = h.run([job_of(deeds, say=True)])
        assert h.stats["splits"] == 1
        check_values(named, deeds, skip=(37,))
        (halved,) = h.run([job_of(deeds, say=False)])
        assert h.stats["splits"] > 4
        assert halved.outcomes[0][37].status is named.outcomes[0][37].status is Status.REJECTED


@pytest.mark.parametrize(
    ("deed", "status"), [("negative-raises", Status.REJECTED), ("negative-crashes", Status.CRASHED)]
)
def test_only_the_set_that_failed_is_blamed(deed, status):
    deeds = ["add", deed, deed]

    def sign(r, k):
        return -1 if (r, k) in ((1, 1), (3, 2)) else 1

    with handle() as h:
        (result,) = h.run([job_of(deeds, sets=4, sign=sign)])
        check_values(result, deeds, sets=4, sign=sign, skip=((1, 1), (3, 2)))
        assert result.outcomes[1][1].status is result.outcomes[3][2].status is status


def test_an_instance_that_always_dies_is_given_up():
    """Two certain deaths are enough: each costs as much as many data sets."""
    with handle() as h:
        (result,) = h.run([job_of(["add", "segv"], sets=12)])
        check_values(result, ["add", "add"], sets=12, skip=(1,))
        outcomes = [row[1] for row in result.outcomes]
        assert {o.status for o in outcomes} == {Status.CRASHED}
        assert sum("not asked" in o.message for o in outcomes) == 10
        assert h.stats["deaths"] <= 5


def test_without_rebuild_the_model_fails_as_one():
    job = job_of(["add", "raise"])
    job.rebuild = None
    with handle() as h:
        (result,) = h.run([job])
        assert [o.status for o in result.outcomes[0]] == [Status.REJECTED] * 2
        assert "(one of 2 in its model)" in result.outcomes[0][0].message


@pytest.mark.parametrize(("deed", "status"), [("many", Status.REJECTED), ("many-die", Status.CRASHED)])
def test_a_failure_that_no_instance_shows_alone_is_kept(deed, status):
    with handle() as h:
        (result,) = h.run([job_of(["add", deed, "add", "add", "add", deed], sets=2)])
        check_values(result, ["add"] * 6, sets=2)
        (found,) = result.unblamed
        assert found.outcome.status is status
        assert {1, 5} <= set(found.instances)
        (result,) = h.run([job_of(["add", "raise", "add", "segv"])])  # each is somebody's
        assert not result.unblamed


def test_after_a_quarantined_job_the_process_is_another():
    with handle() as h:
        for quarantine in (False, True, False, True, True, False):
            job = job_of(["add"])
            job.quarantine = quarantine
            h.submit(job)
        results = h.collect(wait=True)
        assert len(results) == 6
        for r in results:
            check_values(r, ["add"])
        assert h.stats["spawns"] == 4
        assert not h.stats["deaths"]


def test_a_rebuild_that_fails_is_our_error():
    job = job_of(["add", "raise"])
    job.rebuild = lambda idx: 1 / 0
    with handle() as h:
        (result,) = h.run([job])
        assert [o.status for o in result.outcomes[0]] == [Status.HARNESS_ERROR] * 2


def test_a_death_that_no_case_repeats_is_nobodys():
    with handle("Corrupts") as h:
        results = h.run(job_of(["add"], tag=i) for i in range(10))
        for r in results:
            assert r.outcomes[0][0].status is Status.VALUE
        assert h.stats["deaths"] >= 2
        assert any("asked once more alone" in e for e in h.events)


@pytest.mark.parametrize(
    ("cls", "deed", "status", "text"),
    [
        ("Toy", "sys-exit", Status.REJECTED, "SystemExit"),
        ("Toy", "type", Status.HARNESS_ERROR, "expected a NumPy array, got object"),
        ("ReturnsList", "add", Status.HARNESS_ERROR, "values, expected a dict"),
        ("GivesOdd", "add", Status.HARNESS_ERROR, "output 'z0': KeyError: 'never'"),
    ],
)
def test_misbehaviour_has_a_message(cls, deed, status, text):
    with handle(cls) as h:
        (result,) = h.run([job_of([deed])])
        o = result.outcomes[0][0]
        assert o.status is status, o
        assert text in o.message, o


def test_an_oversized_output_arrives_as_its_type():
    with handle() as h:
        (result,) = h.run([job_of(["add", "big"])])
        small, big = (o.outputs[0] for o in result.outcomes[0])
        assert isinstance(small, np.ndarray)
        assert isinstance(big, TypeOnly)
        assert (big.dtype, big.shape) == ("u8", (1 << 29,))


def test_missing_outputs_are_none_and_said():
    with handle("Forgetful") as h:
        (result,) = h.run([job_of(["add"])])
        o = result.outcomes[0][0]
        assert o.status is Status.VALUE
        assert o.outputs == [None]
        assert "surprise" in o.message


def test_a_surplus_output_is_reported_and_no_fault():
    with handle("Generous") as h:
        results = h.run([job_of(["add", "add"])])
        check_values(results[0], ["add", "add"])
        assert not any(o.message for o in results[0].outcomes[0])
        assert h.beside == "run returned ['inside'] beside the outputs that were asked for; they are not looked at"
    with handle() as h:
        h.run([job_of(["add"])])
        assert h.beside == ""


def test_one_output_under_another_name_is_stated():
    with handle("Misnames") as h:
        (result,) = h.run([job_of(["add", "add"])])
        assert h.beside == ""
        assert result.outcomes[0][1].outputs == [None]
        assert "run returned ['other'], expected ['z1']" in result.outcomes[0][1].message


def test_scalars_and_nan_are_values():
    with handle() as h:
        (result,) = h.run([job_of(["float", "nan"])])
        a, b = result.outcomes[0]
        assert a.outputs[0].dtype == np.float64
        assert np.isnan(b.outputs[0]).all()


@pytest.mark.parametrize(
    ("cls", "text", "missing"),
    [
        ("NotABackend", "has no 'version'", None),
        ("NoComma", "formats: expected names such as ", None),
        ("ManyInOne", 'pack: expected a positive number, or one for each format, got "many"', None),
        ("Unsayable", "expected a value that JSON can say, got {'device': <object", None),
        ("NeedsMissing", "package_that_does_not_exist", "package_that_does_not_exist"),
        ("NoSuchClass", "NoSuchClass", None),
        ("DiesAtStart", "no sign of life", None),
    ],
)
def test_a_backend_that_cannot_start_states_why(cls, text, missing):
    h = handle(cls)
    with pytest.raises(BackendError, match=text) as e:
        h.start()
    assert e.value.missing == missing
    assert text in (h.missing() or "")


def test_missing_interpreter():
    h = BackendHandle(Spec("toy", "Toy", module=MODULE, place=Place("/no/such/python")))
    assert "cannot start /no/such/python" in (h.missing() or "")


def test_without_fork():
    with handle("NoFork") as h:
        deeds = ["add", "segv", "add"]
        (result,) = h.run([job_of(deeds)])
        check_values(result, deeds, skip=(1,))
        assert result.outcomes[0][1].status is Status.CRASHED


def test_where_the_system_has_less_to_offer(monkeypatch):
    """As on macOS: no process is forked, there are no memory files, and no look at a process that leaves it there."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "waitid")
    monkeypatch.delattr(os, "memfd_create", raising=False)
    with handle() as h:
        deeds = ["add", "segv", "add", "exit"]
        (result,) = h.run([job_of(deeds)])
        check_values(result, deeds, skip=(1, 3))
        assert [o.status for o in result.outcomes[0]][1::2] == [Status.CRASHED] * 2
    with pytest.raises(BackendError, match="no sign of life"):
        handle("DiesAtStart").start()


def test_recycling_and_idle_death():
    with handle(recycle=5) as h:
        for _ in range(4):
            for r in h.run(job_of(["add"]) for _ in range(5)):
                check_values(r, ["add"])
        assert h.stats["spawns"] == 4
        os.kill(h.pid, 9)
        time.sleep(0.05)
        (r,) = h.run([job_of(["add"])])
        check_values(r, ["add"])


def test_a_process_that_hoards_memory_gives_way():
    with handle(growth=16 << 20) as h:
        for deed, spawns in (("add", 1), ("hoard", 4)):  # 1 MiB of a model; at most two frames fly beyond the limit
            for _ in range(100):
                for r in h.run([job_of([deed])]):
                    check_values(r, [deed])
            assert spawns <= h.stats["spawns"] <= 2 * spawns
        assert h.rss - h._young < 24 << 20


def test_a_backend_may_ask_for_short_lived_processes():
    with handle() as h:
        h.declared = replace(h.start(), recycle=7)
        for r in h.run([job_of(["add"]) for _ in range(30)]):  # all at once: it never idles
            check_values(r, ["add"])
        assert h.stats["spawns"] == 5


def test_the_zygote_may_die_too():
    with handle() as h:
        h.run([job_of(["add"])])
        h.zygote.process.kill()
        h.zygote.process.wait()
        (r,) = h.run([job_of(["add", "segv", "add"])])
        check_values(r, ["add"] * 3, skip=(1,))
        assert r.outcomes[0][1].status is Status.CRASHED


def test_a_process_that_never_serves_is_ended():
    with handle("DiesUnasked") as h:
        results = h.run([job_of(["add"] * 3), job_of(["add"], sets=2)])
        statuses = {o.status for r in results for row in r.outcomes for o in row}
        assert statuses == {Status.CRASHED}
        assert h.stats["deaths"] < 40


def test_a_death_before_a_job_was_taken_is_not_the_jobs():
    with handle("DiesUnasked", kwargs={"times": 3}) as h:
        (result,) = h.run([job_of(["add"])])
        check_values(result, ["add"])
        assert h.stats["deaths"] == 3
        assert not result.unblamed


def values():
    rng = np.random.default_rng(0)
    out = [np.array(["", "ä", "b\n"], object).reshape(3, 1), np.array("s", object), None]
    out.append([np.arange(3.0), np.zeros((0, 2))])
    for name, d in arrays.BY_NAME.items():
        raw = rng.integers(0, 2 if name == "bool" else 4, (3, 5 * d.itemsize), np.uint8)
        out += [raw.view(d), np.zeros((2, 0, 3), d), np.ones((), np.float32).astype(d)]
    out.append(np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)[:, ::2])  # far beyond the socket's buffer
    out.append(np.arange(5, dtype=">i4"))
    return out


def test_every_dtype_survives_the_trip():
    vals = values()
    nodes = [{"do": "echo", "in": [f"v{i}"], "out": f"w{i}"} for i in range(len(vals))]
    ins, outs = [[(f"v{i}", "v", None)] for i in range(len(vals))], [[f"w{i}"] for i in range(len(vals))]
    m = Model("toy", json.dumps(nodes).encode(), ins, outs)
    with handle() as h:
        (result,) = h.run([Job(m, [[[v] for v in vals]])])
    for v, o in zip(vals, result.outcomes[0], strict=True):
        got = o.outputs[0]
        if v is None:
            assert got is None
        elif isinstance(v, list):
            assert [g.shape for g in got] == [x.shape for x in v]
        else:
            assert got.shape == v.shape
            assert got.dtype == v.dtype.newbyteorder("=")
            assert (v.dtype == object and got.tolist() == v.tolist()) or (
                v.dtype != object and (got.tobytes() == v.astype(v.dtype.newbyteorder("=")).tobytes())
            )


def test_tagged_arrays_where_ml_dtypes_is_missing():
    code = f"""
import sys; sys.modules["ml_dtypes"] = None
sys.path.insert(0, {os.path.dirname(worker.__path__[0])!r})
import worker, numpy as np
w = worker.Writer()
a = worker.from_raw(np.array([16256, 16384], np.uint16), "bf16")
spec = w.put(a)
b = worker.Reader(memoryview(b"".join(w.parts))).get(spec)
assert spec == "bf16 2"
assert worker.dtype_name(b[1:]) == "bf16" and worker.raw(b).tolist() == [16256, 16384]
print("ok")
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.stdout.strip() == "ok", out.stderr
    assert np.array([16256], np.uint16).view(ml_dtypes.bfloat16)[0] == 1


def test_host_and_worker_overlap():
    """Submitting returns before the work is done."""
    with handle() as h:
        h.start()
        jobs = [job_of(["add"] * 20, sets=20) for _ in range(20)]
        t = time.perf_counter()
        for j in jobs[:2]:
            h.submit(j)
        submitted = time.perf_counter() - t
        results = h.collect(wait=True)
        assert len(results) == 2
        assert submitted < 1.0


def test_no_process_outlives_its_handle():
    h = handle(deadline=60)
    h.submit(job_of(["hang"]))
    for _ in range(200):
        if h.zygote and h.zygote.progress()[3] == "run":
            break
        time.sleep(0.01)
    pid = h.pid
    h.close()
    time.sleep(0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("missing", [True, False])
def test_a_scalar_gets_a_type_that_numpy_lacks(missing):
    """A 4-bit result of rank 0 is masked, and what NumPy gives for that is no array."""
    code = f"""
import sys; {"sys.modules['ml_dtypes'] = None" if missing else "import ml_dtypes"}
sys.path.insert(0, {os.path.dirname(worker.__path__[0])!r})
import worker, numpy as np
w = worker.Writer()
for name in ("i4", "u4", "i2", "bf16"):
    a = worker.from_raw(np.array(3, np.uint16 if name == "bf16" else np.uint8) & np.uint8(15), name)
    spec = w.put(a)
    assert spec == name, spec
    b = worker.Reader(memoryview(b"".join(w.parts))).get(spec)
    assert worker.dtype_name(b) == name and b.shape == ()
    w = worker.Writer()
print("ok")
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.stdout.strip() == "ok", out.stderr
