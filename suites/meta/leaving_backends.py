"""Backends that hang somewhere or leave processes behind.  Each process writes its id to the file $LEFT_PIDS."""

import os
import subprocess
import sys
import time

from suites.meta.toy_backends import Right

WHERE = os.environ.get("HANGS_AT", "")
CHILD = "import os, time; open({0!r}, 'a').write(str(os.getpid()) + chr(10)); time.sleep(600)"


def note() -> None:
    with open(os.environ["LEFT_PIDS"], "a") as f:
        f.write(f"{os.getpid()}\n")


def leave() -> None:
    """A process in a session of its own, without the environment, whose parent has ended."""
    if os.fork() == 0:
        os.setsid()
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CHILD.format(os.environ["LEFT_PIDS"])], env={}, start_new_session=True
        )
        os._exit(0)
    os.wait()


def at(place: str) -> None:
    if place == WHERE:
        note()
        leave()
        time.sleep(600)


if WHERE:
    at("import")


class Forks(Right):
    def __init__(self):
        at("constructor")

    def version(self):
        at("version")
        return "1.0"

    def load(self, model, format):
        at("load")
        if WHERE == "nowhere":
            note()
            leave()
        return super().load(model, format)

    def run(self, handle, inputs):
        at("run")
        return super().run(handle, inputs)


class Serves(Forks):
    forks = False
