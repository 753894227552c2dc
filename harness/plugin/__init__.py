"""The pytest plugin: ``pytest -m opset_ios17``.

Each file holds one feature: ``options`` (command line, backends), ``collection`` (op versions x backends as items),
``markers`` (opsets, families, backends; unknown ones are rejected), ``summary`` (counts of verdicts).
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.plugin import collection, markers, options, summary


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    markers.register(config)
    options.check(config)
    config.stash[options.BENCH] = options.Bench(config)
    config.stash[collection.GENERATED] = markers.without_modules(config)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    bench = session.config.stash.get(options.BENCH, None)
    if bench is not None:
        stale = bench.stale() if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) else []
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[summary.STALE] = stale
        summary.note(session.config, stale)
        if session.config.stash[summary.IDS] and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = exitstatus = pytest.ExitCode.TESTS_FAILED
        bench.finish(exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED))
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == pytest.ExitCode.OK and reporter is not None and summary.nothing_judged(reporter):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED  # nothing was judged, which is no success


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Of pytest-xdist: a worker has ended."""
    summary.note(node.config, getattr(node, "workeroutput", {}).get(summary.STALE, []))


def pytest_unconfigure(config: pytest.Config) -> None:
    bench = config.stash.get(options.BENCH, None)
    if bench is not None:
        bench.close()


def pytest_ignore_collect(collection_path: Any, config: pytest.Config) -> bool | None:
    return collection.ignored(collection_path, config)


def pytest_collect_file(file_path: Any, parent: pytest.Collector) -> pytest.Collector | None:
    return collection.collect_file(file_path, parent)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    summary.write(terminalreporter)
