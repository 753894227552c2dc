"""The HTML report in a real browser: filters, drill-down, keys, themes, no request, 5,000 mismatches.

Needs Chromium (Debian: ``apt-get install chromium``); without one the tests are skipped and say so.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reports
from reports.summary import BAD
from suites.meta import browser, golden, hostile
from suites.meta.hostile_backends import WORDS

FOUND = browser.find()
REQUIRED = "OPCONFORM_REQUIRE_BROWSER" in os.environ  # CI: a missing browser is a failure there
pytestmark = pytest.mark.skipif(
    FOUND is None and not REQUIRED,
    reason="no Chromium found: install one (Debian: apt-get install chromium) or set OPCONFORM_CHROMIUM",
)
READY = "document.querySelector('.tabs a[aria-current]')"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> reports.RenderResult:
    folder = tmp_path_factory.mktemp("page")
    run = golden.write(folder / "run.jsonl", golden.records(seed=2))
    older = golden.records(
        seed=1,
        fixed=frozenset({"MatMul", "gather"}),
        lacks=frozenset({("onnxruntime", "bf16")}),
        cpu="x86_64 avx2 avx512f",
    )
    base = golden.write(folder / "base.jsonl", older)
    return reports.render(run, folder / "out", baseline=base)


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    assert FOUND, "no Chromium found, and OPCONFORM_REQUIRE_BROWSER is set"
    with browser.Browser(FOUND) as b:
        yield b


@pytest.fixture
def page(chromium: browser.Browser, made: reports.RenderResult) -> Iterator[browser.Browser]:
    """The report, freshly opened; whatever the test does, the page may neither request nor throw."""
    chromium.requests.clear()
    chromium.errors.clear()
    chromium.size(1440, 900)
    chromium.open("about:blank")
    chromium.open(made.html)
    chromium.wait(READY)
    yield chromium
    assert set(chromium.requests) <= {made.html.resolve().as_uri(), "about:blank"}
    assert chromium.errors == []


def go(page: browser.Browser, **state: str) -> None:
    """Open the page as a link with this state would."""
    query = json.dumps(state)
    page.js(f"location.hash = '#' + new URLSearchParams({query})")
    page.wait(f"document.body.dataset.view === {json.dumps(state.get('view', 'overview'))}")


def texts(page: browser.Browser, selector: str) -> list[str]:
    return page.js(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")


def count(page: browser.Browser, selector: str) -> int:
    return page.js(f"document.querySelectorAll({json.dumps(selector)}).length")


def shown_cases(page: browser.Browser) -> int:
    return int(page.js("document.querySelector('#case-count').textContent.split(' ')[0].replace(',', '')"))


def bad_of(s: Any, **want: str) -> int:
    names = ("key", "opset", "backend", "dtype", "verdict")
    return sum(
        n
        for cell, n in s.cube.items()
        if cell[4] in BAD and all(str(cell[names.index(k)]) == v for k, v in want.items())
    )


def test_overview_shows_the_figures(page: browser.Browser, made: reports.RenderResult) -> None:
    s = made.summary
    figures = texts(page, ".kpi b")
    assert figures[0] == f"{s.bad:,}"
    assert figures[1] == f"{s.judged:,}"
    assert f"{s.bad:,} unexplained" in page.js("document.querySelector('.state').textContent")
    assert count(page, ".backend") == len(s.backends)
    assert "null" not in page.js("document.body.innerText").split()


@pytest.mark.parametrize(
    "view", ["overview", "matrix", "cases", "clusters", "coverage", "sensitivity", "listed", "changes"]
)
@pytest.mark.parametrize("dark", [False, True])
def test_every_view_draws_in_both_themes(page: browser.Browser, view: str, dark: bool) -> None:
    page.dark(dark)
    go(page, view=view)
    assert page.js("document.querySelector('main').innerText.length") > 80
    text = page.js("document.body.innerText")
    assert "undefined" not in text
    assert "[object" not in text
    assert "NaN %" not in text
    back = page.js("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(x) for x in back[4:-1].split(",")) < 150) == dark
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
    page.dark(False)


def test_matrix_counts_per_op_version_and_backend(page: browser.Browser, made: reports.RenderResult) -> None:
    go(page, view="matrix")
    s = made.summary
    cells = page.js(
        "[...document.querySelectorAll('a.mcell')].map("
        "e => [e.getAttribute('aria-label'), e.querySelector('.mnum').textContent])"
    )
    assert cells
    for label, number in cells:
        key, _, rest = label.partition(" on ")
        backend = rest.partition(":")[0]
        bad = bad_of(s, key=key, backend=backend)
        if bad:
            assert number == str(bad), label
    page.click("#only-bad")
    page.wait("!document.querySelector('.mrow .mnum:not(.bad)') || true")
    keys = {k for (k, _, _, _, v), n in s.cube.items() if v in BAD}
    assert f"{len(keys)} op versions" in page.js("document.querySelector('.bar').textContent")


def test_drill_down_from_matrix_to_a_case(page: browser.Browser, made: reports.RenderResult) -> None:
    """Cell -> list of its cases -> everything about one of them."""
    go(page, view="matrix", q="conv")
    page.click("a.mcell[aria-label^='onnx/Conv/11 on onnxruntime']")
    page.wait("document.body.dataset.view === 'cases'")
    assert shown_cases(page) == bad_of(made.summary, key="onnx/Conv/11", backend="onnxruntime")
    case = next(c for c in made.summary.cases if c["key"] == "onnx/Conv/11" and c["backend"] == "onnxruntime")
    text = page.js("document.querySelector('.case-detail').innerText")
    for part in (
        case["replay"],
        case["formula"],
        case["class"],
        case["id"],
        "Minimal instance",
        case["blame"] or "Alone:",
        "group",
    ):
        assert part in text, part
    for line in case["notation"].splitlines():
        assert line.strip() in text
    for e in case["diff"]["elements"]:
        assert e["actual_hex"] in text
        assert e["expected_hex"] in text
    assert count(page, ".hist rect") == len(case["diff"]["ulp_histogram"])
    assert f"{case['diff']['count']} of {case['diff']['size']}" in page.js(
        "document.querySelector('canvas.map').getAttribute('aria-label')"
    )
    painted = page.js(
        "(() => { const c = document.querySelector('canvas.map'); c.paint(); const d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; const s = new Set(); for (let i = 0; i < d.length; i += 4)"
        " if (d[i+3]) s.add([d[i], d[i+1], d[i+2]].join()); return s.size; })()"
    )
    assert painted == (2 if case["diff"]["count"] < case["diff"]["size"] else 1)


def test_special_and_huge_numbers(chromium: browser.Browser, tmp_path: Path) -> None:
    rows = golden.records(seed=2, keep=0.5)
    case = next(r for r in rows if r["t"] == "case" and r["verdict"] == "mismatch")
    case["diff"] |= {"factor": "inf", "max_ulp": float("nan"), "max_abs": "-inf", "size": 2, "count": 1}
    case["diff"]["elements"] = [
        {"index": [], "expected": 2**62 + 1, "actual": "nan", "ulp": "inf", "bound": 1e-30, "why": "first"},
        {"index": [1], "expected": -0.0, "actual": 1.5, "ulp": 3.0, "bound": 0, "why": "worst"},
    ]
    made = reports.render(golden.write(tmp_path / "r.jsonl", rows), tmp_path)
    chromium.errors.clear()
    chromium.open(made.html)
    chromium.wait(READY)
    go(chromium, view="cases", case=case["id"])
    rows = chromium.js(
        "[...document.querySelectorAll('.elements tbody tr')].map(r => [...r.children].map(c => c.textContent))"
    )
    assert [r[2] for r in rows] == [str(2**62 + 1), "−0"]
    assert [r[3] for r in rows] == ["NaN", "1.5"]
    assert [r[6] for r in rows] == ["∞", "3"]
    assert rows[0][7] == "±1.000e-30"
    assert "no multiple of the bound" in chromium.js("document.querySelector('.rule').textContent")
    assert chromium.errors == []


def test_op_panel_shows_opsets_and_dtypes(page: browser.Browser, made: reports.RenderResult) -> None:
    go(page, view="matrix", key="onnx/Conv/11")
    oracles, *tables = page.js(
        "[...document.querySelectorAll('.panel table.cross')].map(t => [...t.querySelectorAll('tbody tr')].map(r => "
        "[...r.children].map(c => c.textContent)))"
    )
    tally = {row[0]: [0 if x == "–" else int(x.replace(",", "")) for x in row[1:]] for row in oracles}
    columns = (("agree",), BAD, ("known", "ambiguous"), ("flaky",), ("uninformative", "unknown"), ("unsupported",))
    cube = [(b, v, n) for (k, _, b, _, v), n in made.summary.cube.items() if k == "onnx/Conv/11"]
    assert tally == {
        b: [sum(n for x, v, n in cube if x == b and v in column) for column in columns] for b in {x for x, _, _ in cube}
    }
    opsets = {row[0] for row in tables[0]}
    assert opsets == {str(o) for (k, o, *_), n in made.summary.cube.items() if k == "onnx/Conv/11"}
    assert {row[0] for row in tables[1]} == {"f16", "f32"}
    for row in tables[0]:
        assert int(row[2].split(" /")[0]) == bad_of(
            made.summary, key="onnx/Conv/11", backend="onnxruntime", opset=row[0]
        )
    page.key("Escape")
    page.wait("!document.querySelector('.panel')")


def test_filters_are_in_the_url(page: browser.Browser, made: reports.RenderResult) -> None:
    go(page, view="cases")
    everything = shown_cases(page)
    assert everything == len(made.summary.cases)
    page.js(
        "(e => { e.value = 'onnxruntime'; e.dispatchEvent(new Event('change')) })(document.querySelector('#f-backend'))"
    )
    page.click(".chip[data-verdict=crashed]")
    page.wait("location.hash.includes('verdict=crashed')")
    want = sum(c["backend"] == "onnxruntime" and c["verdict"] == "crashed" for c in made.summary.cases)
    assert shown_cases(page) == want > 0
    link = page.js("location.href")
    page.open("about:blank")
    page.open(link)
    page.wait(READY)
    assert shown_cases(page) == want
    assert page.js("document.querySelector('#f-backend').value") == "onnxruntime"
    assert page.js("document.querySelector('.chip[data-verdict=crashed]').getAttribute('aria-pressed')") == "true"
    page.click("#clear")
    page.wait("!location.hash.includes('backend')")
    assert shown_cases(page) == everything
    page.js("history.back()")
    page.wait("location.hash.includes('backend=onnxruntime')")
    assert shown_cases(page) == want


def test_search_narrows_as_one_types(page: browser.Browser, made: reports.RenderResult) -> None:
    go(page, view="cases")
    page.key("/")
    page.type("softmax nowhere")
    page.wait("location.hash.includes('nowhere')")
    assert shown_cases(page) == 0  # every word must be found
    page.js("document.querySelector('#q').select()")
    page.type("SIGSEGV")
    page.wait("location.hash.includes('SIGSEGV')")
    assert shown_cases(page) == sum("SIGSEGV" in c["message"] for c in made.summary.cases) > 0


def test_a_link_to_one_case_opens_it(page: browser.Browser, made: reports.RenderResult) -> None:
    case = made.summary.cases[len(made.summary.cases) // 2]
    go(page, view="cases", case=case["id"])
    assert case["id"] in page.js("document.querySelector('.case-detail .id').textContent")
    assert count(page, ".case.sel") == 1


def test_clusters_lead_to_their_cases(page: browser.Browser, made: reports.RenderResult) -> None:
    go(page, view="clusters")
    assert "strides: all 3" in texts(page, ".pred")
    page.js(
        "[...document.querySelectorAll('.theme')].find(t => "
        "t.textContent.includes('strides: all 3')).querySelector('a.button').click()"
    )
    page.wait("document.body.dataset.view === 'cases'")
    i = next(i for i, c in enumerate(made.summary.clusters) if c["predicate"] == "strides: all 3")
    assert shown_cases(page) == sum(c["cluster_index"] == i for c in made.summary.cases) > 0


def test_coverage_and_sensitivity_and_ledger(page: browser.Browser, made: reports.RenderResult) -> None:
    go(page, view="coverage", q="Resize")
    row = page.js("document.querySelector('.crow:not(.chead)').innerText")
    c = made.summary.coverage["onnx/Resize/19"]
    assert str(sum(c["dtype"].values())) in row
    assert f"{c['pairs'][0]}/{c['pairs'][1]}" in row
    assert "1/3" in row, "one reach goal met of three that no clause rules out"
    go(page, view="coverage", key="onnx/Resize/19")
    unmet = page.js("document.querySelector('#unmet-goals').innerText")
    assert "extent:X[0]=0" in unmet
    assert "data:nan:X" in unmet
    assert "rank:X" not in unmet
    go(page, view="coverage")
    unsupported = page.js(
        "[...document.querySelectorAll('.cross.wide tr')].map(r => [...r.children].map(c => c.textContent))"
    )
    row = next(r for r in unsupported if r[0] == "onnx.reference")
    assert float(row[unsupported[0].index("bf16")].split()[0]) > 90
    assert row[unsupported[0].index("f32")] == "0"
    go(page, view="sensitivity")
    planted = sum(r["planted"] for r in made.summary.sensitivity)
    assert f"{planted:,} planted faults" in page.js("document.querySelector('main').innerText")
    hidden, met = reports.summary.hidden_faults(made.summary.sensitivity)["litert-opt 2.3"]
    said = page.js("document.querySelector('#hidden-faults').innerText")
    assert hidden
    assert f"{hidden:,} of {met:,}" in said
    assert "off_by_one_pad" in said
    assert "litert/odd-pads" in said
    go(page, view="listed")
    ledger = page.js("document.querySelector('main').innerText")
    for entry in [*made.summary.known.values(), *made.summary.ambiguity.values()]:
        assert entry["id"] in ledger
        assert entry["reason"] in ledger
        assert entry["clause"] in ledger
    assert count(page, ".entry.idle") == 1
    assert "not seen" in ledger


def test_changes_against_the_baseline(page: browser.Browser, made: reports.RenderResult) -> None:
    go(page, view="changes")
    assert made.diff
    assert [e["key"] for e in made.diff["new"]] == ["onnx/MatMul/13"]
    assert texts(page, ".change.new tbody th") == ["onnx/MatMul/13"]
    assert texts(page, ".change.listed_new tbody th") == ["coremltools/gather-negative-axis"]
    taken = texts(page, ".change.taken tbody td")
    assert ("onnxruntime", "bf16") in list(zip(taken[::2], taken[1::2]))
    (said,) = texts(page, "#processors")
    assert said.endswith("no longer avx512f.")
    go(page, view="cases", new="1")
    assert shown_cases(page) == sum(c["baseline"] == "new" for c in made.summary.cases) > 0


def test_keyboard_alone_is_enough(page: browser.Browser) -> None:
    page.key("3")
    page.wait("document.body.dataset.view === 'cases'")
    first = page.js("document.querySelector('.case-detail .id').textContent")
    page.key("j")
    page.wait(f"document.querySelector('.case-detail .id').textContent !== {json.dumps(first)}")
    page.key("k")
    page.wait(f"document.querySelector('.case-detail .id').textContent === {json.dumps(first)}")
    page.js("document.querySelector('#case-list').focus()")
    page.key("End")
    page.wait("document.querySelector('.case.sel') && document.querySelector('#case-list').scrollTop > 1000")
    active = page.js("document.querySelector('#case-list').getAttribute('aria-activedescendant')")
    assert page.js(f"document.getElementById({json.dumps(active)}).getAttribute('aria-selected')") == "true"
    page.key("?")
    page.wait("document.querySelector('dialog').open")
    page.key("Escape")
    page.wait("!document.querySelector('dialog').open")
    page.key("2")
    page.wait("document.body.dataset.view === 'matrix'")
    page.js("document.querySelector('button.mname').focus()")
    page.key("Enter")
    page.wait("document.querySelector('.panel')")
    reached = set()
    for _ in range(14):
        page.key("Tab")
        reached.add(page.js("document.activeElement.tagName + '.' + document.activeElement.className"))
    assert len(reached) > 1


def test_theme_switch(page: browser.Browser) -> None:
    seen = []
    for _ in range(3):
        page.key("t")
        seen.append(page.js("document.documentElement.dataset.theme || 'auto'"))
    assert sorted(seen) == ["auto", "dark", "light"]


def test_text_has_enough_contrast(page: browser.Browser) -> None:
    """Body, dim and warning text against its card: at least 4.5 in both themes (WCAG AA)."""
    script = """
      (() => {
        const lum = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
          .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126*r + 0.7152*g +
          0.0722*b; };
        const card = getComputedStyle(document.querySelector('.card')).backgroundColor;
        return ['.card h2', '.card .dim', '.card .hot', '.card a.more'].map(q => {
          const [a, b] = [lum(getComputedStyle(document.querySelector(q)).color), lum(card)].sort((x, y) => y
          - x); return (a + 0.05) / (b + 0.05); });
      })()"""
    for dark in (False, True):
        page.dark(dark)
        assert min(page.js(script)) >= 4.5
    page.dark(False)


def test_what_has_no_verdict_is_not_shown_as_clean(chromium: browser.Browser, tmp_path: Path) -> None:
    rows = [
        {"t": "run", "format": 1, "seed": 0, "backends": {"odd": {"version": "1"}}},
        {
            "t": "batch",
            "key": "onnx/Relu/14",
            "opset": 14,
            "first": 0,
            "count": 2,
            "tally": [["odd", "f32", "unknown", 2]],
        },
        {"t": "end", "elapsed": 1.0, "cases": 2, "interrupted": False, "unused": ["gone"]},
    ]
    chromium.open(reports.render(golden.write(tmp_path / "r.jsonl", rows), tmp_path).html)
    chromium.wait(READY)
    assert texts(chromium, ".state.bad") == ["2 without verdict, 1 listed, not met"]
    assert texts(chromium, ".backend-head .hot") == ["2 without verdict"]
    assert not count(chromium, ".state.ok")


def test_hostile_text_does_not_run(chromium: browser.Browser, tmp_path: Path) -> None:
    evil = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'
    rows = golden.records(seed=2)
    for r in rows:
        if r["t"] == "case":
            r |= {"message": evil, "notation": evil, "replay": evil, "rule": evil, "formula": evil}
        if r.get("listed"):
            r["listed"] = [e | {"reason": evil, "clause": evil} for e in r["listed"]]
    made = reports.render(golden.write(tmp_path / "r.jsonl", rows), tmp_path)
    chromium.requests.clear()
    chromium.open(made.html)
    chromium.wait(READY)
    for view in ("cases", "listed", "clusters"):
        go(chromium, view=view)
    assert chromium.js("window.pwned") is None
    go(chromium, view="listed")
    assert evil in chromium.js("document.querySelector('main').textContent")
    assert [r for r in chromium.requests if not r.startswith("file:")] == []


def test_the_policy_really_forbids_requests(page: browser.Browser) -> None:
    """The page cannot fetch even if its script wanted to."""
    blocked = page.js("fetch('https://example.org/').then(() => 'sent', () => 'blocked')")
    assert blocked == "blocked"
    page.js("document.body.append(Object.assign(new Image(), {src: 'https://example.org/x.png'}))")
    time.sleep(0.2)
    tried = [r for r in page.requests if "example.org" in r]
    assert page.blocked.count("csp") >= len(tried)  # each was stopped before it left
    assert page.errors, page.errors
    assert all("Content Security Policy" in e or "violates" in e for e in page.errors), page.errors
    page.errors.clear()
    page.requests.clear()


def test_five_thousand_mismatches_stay_usable(chromium: browser.Browser, tmp_path: Path) -> None:
    rows = golden.many(5000)
    made = reports.render(golden.write(tmp_path / "many.jsonl", rows), tmp_path / "out")
    assert made.summary.bad >= 5000
    chromium.errors.clear()
    start = time.monotonic()
    chromium.open(made.html)
    chromium.wait(READY)
    opened = time.monotonic() - start
    go(chromium, view="cases")
    assert shown_cases(chromium) == len(made.summary.cases) > 5000
    assert count(chromium, ".case") < 60  # only what is visible exists

    def timed(script: str) -> float:
        """Milliseconds of script and layout until the next frame."""
        return chromium.js(
            f"(async () => {{ const t = performance.now(); {script}; document.body.offsetHeight;"
            " await new Promise(r => requestAnimationFrame(r)); return performance.now() - t; })()"
        )

    worst = max(timed("document.querySelector('#case-list').scrollTop += 20000") for _ in range(5))
    typing = timed("location.hash = '#view=cases&q=conv'; await new Promise(r => setTimeout(r))")
    matrix = timed("location.hash = '#view=matrix'; await new Promise(r => setTimeout(r))")
    print(f"opened in {opened:.2f} s, scroll {worst:.0f} ms, filter {typing:.0f} ms, matrix {matrix:.0f} ms")
    assert opened < 8
    assert worst < 400
    assert typing < 1500
    assert matrix < 1500
    assert chromium.errors == []


def test_hostile_words_are_shown_as_text(chromium: browser.Browser, tmp_path: Path) -> None:
    """Tags stay text, and what could hide or reorder its neighbours is shown as its escape."""
    new = golden.write(tmp_path / "new.jsonl", hostile.rows(WORDS))
    made = reports.render(new, tmp_path / "out", golden.write(tmp_path / "old.jsonl", hostile.rows("x")))
    chromium.errors.clear()
    chromium.open(made.html)
    chromium.wait(READY)
    tags = "[...document.querySelectorAll('script, img, iframe, b[onclick]')].length"
    here, text = chromium.js(tags), ""
    for view in ("overview", "matrix", "cases", "clusters", "coverage", "sensitivity", "listed", "changes"):
        go(chromium, view=view)
        text += chromium.js("document.body.innerText")
        assert chromium.js(tags) == here
    assert "<script>alert(1)</script>" in text
    assert "\\u202e" in text
    assert "\\u001b" in text
    assert not any(c in text for c in "\x1b\x00\u202e")
    assert chromium.errors == []
