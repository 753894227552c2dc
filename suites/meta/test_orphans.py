"""No process of a backend outlives its host, however the host ends and wherever the backend hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suites.meta.test_cli import env  # noqa: F401  the fixture

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
ENDINGS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def ours(token: str) -> list[int]:
    """Processes whose environment holds the token."""
    out = []
    for p in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (p / "environ").read_bytes():
                out.append(int(p.name))
        except OSError:
            pass
    return [pid for pid in out if alive(pid)]


def gone(left: Left, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        living = [p for p in left.pids() if alive(p)] + ours(left.token)
        if not living:
            return
        time.sleep(0.05)
    told = [(p, Path(f"/proc/{p}/cmdline").read_bytes()) for p in living]
    for p in living:
        os.kill(p, signal.SIGKILL)
    raise AssertionError(f"still there: {told}")


class Left:
    """Starts a host whose backend hangs at ``place``, and knows what it leaves."""

    def __init__(self, folder: Path, environ: dict[str, str], cls: str, place: str, verb: str = "run") -> None:
        self.file = folder / "pids"
        self.file.touch()
        self.token = f"LEFT_PIDS={self.file}"
        more = ["--jobs", "2"] if verb == "campaign" else []
        self.host = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "harness.cli",
                verb,
                "--dialect",
                "toy",
                "--op",
                "Add",
                "--op",
                "Max",
                "--backend",
                f"suites.meta.leaving_backends:{cls}",
                "--out",
                str(folder / "out"),
                *more,
            ],
            cwd=ROOT,
            env={**environ, "LEFT_PIDS": str(self.file), "HANGS_AT": place},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def pids(self) -> list[int]:
        return [int(x) for x in self.file.read_text().split()]

    def hangs(self) -> None:
        """Wait until it does: its process and the one that it left are there."""
        until = time.monotonic() + 60
        while len(self.pids()) < 2:
            assert time.monotonic() < until, self.host.communicate()[0]
            assert self.host.poll() is None, self.host.communicate()[0]
            time.sleep(0.02)
        assert any(map(alive, self.pids()))


PLACES = [("Forks", p) for p in ("import", "constructor", "version", "run")] + [
    ("Serves", p) for p in ("constructor", "version", "run")
]


@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize(("cls", "place"), PLACES)
def test_a_backend_that_hangs_ends_with_its_host(tmp_path, env, cls, place, number):  # noqa: F811
    left = Left(tmp_path, env, cls, place)
    left.hangs()
    left.host.send_signal(number)
    out, _ = left.host.communicate(timeout=60)
    assert left.host.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 2), out
    assert "Traceback" not in out, out
    gone(left)


@pytest.mark.parametrize("number", ENDINGS)
def test_a_campaign_ends_while_a_backend_hangs_at_its_start(tmp_path, env, number):  # noqa: F811
    left = Left(tmp_path, env, "Forks", "constructor", "campaign")
    left.hangs()
    left.host.send_signal(number)
    out, _ = left.host.communicate(timeout=60)
    assert left.host.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 2), out
    assert "Traceback" not in out, out
    gone(left)


@pytest.mark.parametrize("cls", ["Forks", "Serves"])
def test_a_session_of_its_own_ends_with_the_run(tmp_path, env, cls):  # noqa: F811
    left = Left(tmp_path, env, cls, "nowhere")
    out, _ = left.host.communicate(timeout=120)
    assert left.host.returncode == 0, out
    assert len(left.pids()) >= 2
    gone(left, 2.0)


def test_a_supervisor_that_is_killed_takes_its_worker_along(tmp_path, env):  # noqa: F811
    """The parent-death signal: also where the host goes at the same time."""
    left = Left(tmp_path, env, "Forks", "run")
    left.hangs()
    supervisors = [p for p in ours(left.token) if b"supervisor.py" in Path(f"/proc/{p}/cmdline").read_bytes()]
    workers = [p for p in ours(left.token) if b"worker/__main__.py" in Path(f"/proc/{p}/cmdline").read_bytes()]
    assert supervisors
    assert workers
    os.kill(left.host.pid, signal.SIGSTOP)  # it cannot look after anything
    for p in supervisors:
        os.kill(p, signal.SIGKILL)
    until = time.monotonic() + 10
    while any(map(alive, set(workers) - set(supervisors))) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, set(workers) - set(supervisors)))
    os.kill(left.host.pid, signal.SIGKILL)
    left.host.communicate()
    for p in filter(alive, left.pids()):  # without a supervisor and an environment nobody can know of it
        os.kill(p, signal.SIGKILL)
