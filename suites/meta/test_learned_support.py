"""What the engine learns of a backend: which cases go alone, which are not asked, and that both are checked again."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from harness.cases.case import Case, draw_case
from harness.cases.result import Result
from harness.cases.traits import FAR, far, traits
from harness.core.errors import FormatError
from harness.core.outcome import Outcome, Status, Verdict
from harness.engine.learned_support import ASK_AGAIN, ASK_REFUSED, GAP, LACK, SELDOM, SURE, UNASKED, LearnedSupport
from harness.engine.learning_stages import Answers, stage
from harness.engine.verdict import judge_case
from harness.ledger.loader import load_ledger
from harness.workers.info import BackendInfo
from suites.meta.toy import toy

KEY, VERSION = next(iter(toy.versions.items()))
KNOWN = """
[[known]]
id = "toy-listed"
backend = "b"
op = "{op}"
when = "rank('{slot}') >= 0"
verdict = "{verdict}"
reason = "it does"
clause = "it should not"
"""


def case(i: int = 1, opset: int = 1) -> Case:
    c = draw_case(VERSION, 1, 0, i, invalid=False, lazy=True)
    c.inst.opset = opset
    c._types = (KEY, "one type")
    return c


def learned_support(tmp_path: Any = None, verdict: str = "") -> LearnedSupport:
    ledger = None
    if verdict:
        op, slot = KEY.rsplit("/", 1)[0], VERSION.schema.inputs[0].name
        (tmp_path / "x.toml").write_text(KNOWN.format(op=op, slot=slot, verdict=verdict))
        ledger = load_ledger([tmp_path])
    return LearnedSupport(BackendInfo("b"), ledger)


def answer(h: LearnedSupport, c: Case, status: Status, verdict: Verdict) -> None:
    h.learn(Result(c, "b", verdict, Outcome(status)))


def plan(h: LearnedSupport, c: Case) -> str:
    """What becomes of a case at a later stage than all that was answered before."""
    h.closed(KEY, -1)
    settled, alone = h.plan([c])
    return "settled" if id(c) in settled else "alone" if id(c) in alone else "together"


def test_types_go_alone_until_they_passed() -> None:
    h = learned_support()
    assert plan(h, case()) == "alone"
    h.agreed([case()])
    assert plan(h, case()) == "together"


@pytest.mark.parametrize(
    ("shape", "alone"), [((0, FAR), True), ((0, FAR - 1), False), ((FAR,), False), ((2, 3), False)]
)
def test_a_far_extent_beside_no_element_goes_alone(shape: tuple[int, ...], alone: bool) -> None:
    h = learned_support()
    answer(h, case(0), Status.VALUE, Verdict.AGREE)
    c = case()
    c.set_data([{VERSION.schema.inputs[0].name: np.broadcast_to(np.float32(0), shape)}])
    assert far(c) == alone
    assert plan(h, c) == ("alone" if alone else "together")


def test_types_that_lack_run_rarely() -> None:
    h = learned_support()
    for _ in range(GAP):
        assert plan(h, case()) == "alone"
        answer(h, case(), Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    assert plan(h, case(1)) == "settled"
    assert plan(h, case(ASK_AGAIN)) == "alone"
    h.agreed([case()])
    assert plan(h, case(1)) == "alone"  # sometimes unsupported: it would fail a model that it shares


def test_types_that_are_sometimes_unsupported_go_alone_until_that_is_rare() -> None:
    h = learned_support()
    h.agreed([case()])
    answer(h, case(), Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    assert plan(h, case()) == "alone"
    for _ in range(SELDOM):
        h.agreed([case()])
    assert plan(h, case()) == "together"


def test_a_type_that_never_passed_in_any_combination_is_a_gap() -> None:
    h = learned_support()

    def of(*types: str, index: int = 1) -> Case:
        c = case(index)
        c._types = (KEY, *types)
        return c

    h.agreed([of("f32", "i32")])
    for k in range(LACK):
        answer(h, of("bf16", f"i{k}"), Status.UNSUPPORTED, Verdict.UNSUPPORTED)
        answer(h, of("f32", f"u{k}"), Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    assert plan(h, of("bf16", "i99")) == "settled"
    assert plan(h, of("bf16", "i99", index=ASK_AGAIN)) == "alone"
    assert plan(h, of("f32", "u99")) == "alone"  # f32 passed: the other type may too
    h.agreed([of("bf16", "i99")])
    assert plan(h, of("bf16", "i98")) == "alone"


def test_a_new_combination_of_types_that_passed_goes_together_where_few_lacked() -> None:
    h = learned_support()

    def of(*types: str) -> Case:
        c = case()
        c._types = (KEY, *types)
        return c

    h.agreed([of("f32", "i32")])
    h.agreed([of("bf16", "i64")])
    assert plan(h, of("f32", "i64")) == "together"
    assert plan(h, of("f32", "i8")) == "alone"  # i8 is new
    answer(h, of("bf16", "i32"), Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    assert plan(h, of("bf16", "i32")) == "alone"
    assert plan(h, of("f32", "i64")) == "alone"  # mixtures lack here


def test_a_gap_at_one_opset_does_not_affect_the_others() -> None:
    h = learned_support()
    h.agreed([case(opset=7)])
    for _ in range(GAP):
        answer(h, case(opset=5), Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    assert plan(h, case(opset=5)) == "settled"
    assert plan(h, case(opset=7)) == "together"


@pytest.mark.parametrize(
    ("status", "verdict"), [(Status.REJECTED, Verdict.WRONGLY_REJECTED), (Status.CRASHED, Verdict.CRASHED)]
)
def test_what_is_refused_now_and_then_goes_alone_while_it_lasts(status: Status, verdict: Verdict) -> None:
    h = learned_support()
    for _ in range(3):
        h.agreed([case()])
    answer(h, case(), status, verdict)
    assert plan(h, case()) == "alone"
    for _ in range(SELDOM * 11):
        h.agreed([case()])
    assert plan(h, case()) == "together"


def test_a_listed_refusal_goes_alone_and_does_not_count(tmp_path: Any) -> None:
    h = learned_support(tmp_path, "wrongly_rejected")
    h.agreed([case()])
    for _ in range(SURE):
        c = case()
        assert plan(h, c) == "alone"
        answer(h, c, Status.REJECTED, Verdict.KNOWN)
    assert plan(h, case(1)) == "settled"  # often enough
    assert plan(h, case(ASK_REFUSED)) == "alone"
    h.ledger = None
    assert plan(h, case()) == "together"


def test_a_condition_that_rarely_predicts_is_ignored(tmp_path: Any) -> None:
    h = learned_support(tmp_path, "wrongly_rejected")
    h.agreed([case()])
    for _ in range(SELDOM + 1):
        c = case()
        plan(h, c)
        h.agreed([c])
    assert plan(h, case()) == "together"


def test_a_listed_death_is_shown_and_then_runs_rarely(tmp_path: Any) -> None:
    h = learned_support(tmp_path, "crashed")
    h.agreed([case()])
    for _ in range(SURE):
        c = case()
        assert plan(h, c) == "alone"
        answer(h, c, Status.CRASHED, Verdict.KNOWN)
    assert plan(h, case(1)) == "settled"
    again = case(ASK_AGAIN)
    assert plan(h, again) == "alone"
    for _ in range(3):  # mended: the condition loses its credit
        c = case(ASK_AGAIN)
        assert plan(h, c) == "alone"
        h.agreed([c])
    assert plan(h, case(1)) == "alone"


def test_a_listed_death_of_types_that_never_passed_does_not_run_each_time(tmp_path: Any) -> None:
    h = learned_support(tmp_path, "crashed")
    for _ in range(SURE):
        c = case()
        assert plan(h, c) == "alone"
        answer(h, c, Status.CRASHED, Verdict.KNOWN)
    assert plan(h, case(1)) == "settled"
    assert plan(h, case(ASK_AGAIN)) == "alone"


def test_unsupported_counts_as_a_gap_even_if_a_rejection_was_listed(tmp_path: Any) -> None:
    h = learned_support(tmp_path, "wrongly_rejected")
    for _ in range(GAP):
        c = case()
        assert plan(h, c) == "alone"
        answer(h, c, Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    h.closed(KEY, -1)
    settled, _ = h.plan([c := case(1)])
    assert "lacks these types" in settled[id(c)].message


def broken(rule: str, i: int = 1) -> Case:
    c = case(i)
    c.inst.rule = rule
    return c


def test_a_broken_rule_that_ends_the_process_runs_rarely() -> None:
    h = learned_support()
    for _ in range(SURE):
        assert plan(h, broken("a")) == "together"
        answer(h, broken("a"), Status.CRASHED, Verdict.KNOWN)
    asked = [i for i in range(1000) if plan(h, broken("a", i)) == "together"]
    assert 500 < len(asked) * ASK_AGAIN < 2000, "one in so many, by its number"
    assert 1 not in asked, "one in so many, by its number"
    assert plan(h, broken("b")) == plan(h, broken("a", -3)) == "together"  # another rule; a saved instance
    c = broken("a")
    (outcome,) = h.plan([c])[0].values()
    result = judge_case(c, h.info, [outcome])
    assert result.verdict is Verdict.UNSUPPORTED
    assert result.outcome.phase == UNASKED
    h.learn(result)  # which teaches nothing
    assert plan(h, broken("a")) == "settled"
    h.agreed([broken("a")])  # mended: refused as it should be
    assert plan(h, broken("a")) == "together"


@pytest.mark.parametrize(("status", "verdict"), [(Status.CRASHED, Verdict.CRASHED), (Status.VALUE, Verdict.KNOWN)])
def test_a_broken_rule_runs_while_its_end_is_no_listed_death(status: Status, verdict: Verdict) -> None:
    h = learned_support()
    for _ in range(2 * SURE):
        answer(h, broken("a"), status, verdict)
    assert plan(h, broken("a")) == "together"


def test_saved_instances_always_run() -> None:
    h = learned_support()
    for _ in range(GAP):
        answer(h, case(), Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    assert plan(h, case(-7)) == "alone"


@pytest.mark.parametrize(("verdict", "hangs"), [("crashed", False), ("timed_out", True)])
def test_a_listed_hang_is_known_before_it_runs(tmp_path: Any, verdict: str, hangs: bool) -> None:
    c = case()
    assert learned_support(tmp_path, verdict).dangers([c])[1] == ({id(c)} if hangs else set())


@pytest.mark.parametrize("verdict", ["crashed", "mismatch"])
def test_an_instance_that_damages_its_process_shares_none(tmp_path: Any, verdict: str) -> None:
    h = learned_support(tmp_path, verdict)
    assert h.dangers([case()])[0] == set()
    (tmp_path / "x.toml").write_text((tmp_path / "x.toml").read_text() + "corrupts_process = true\n")
    h = LearnedSupport(BackendInfo("b"), load_ledger([tmp_path]))
    for _ in range(2 * SELDOM):  # right every time, and still not trusted
        c = case()
        assert plan(h, c) == "alone"
        assert h.dangers([c])[0] == {id(c)}
        h.agreed([c])
    assert LearnedSupport(BackendInfo("other"), load_ledger([tmp_path])).dangers([case()])[0] == set()


def test_wrong_with_neighbours_travels_alone_from_then_on(tmp_path: Any) -> None:
    inst = case().inst.dumps()
    learned_support(tmp_path, "mismatch")
    (tmp_path / "x.toml").write_text(
        (tmp_path / "x.toml").read_text() + f"instance = '{inst}'\nneighbours = ['{inst}']\n"
    )
    ledger = load_ledger([tmp_path])
    h = LearnedSupport(BackendInfo("b"), ledger)
    for _ in range(2 * SELDOM):
        c = case()
        assert plan(h, c) == "alone"
        h.agreed([c])
    wrong = Result(case(), "b", Verdict.MISMATCH, Outcome(Status.VALUE))
    assert ledger.explain(wrong, h.info) is None, "it went wrong alone"
    wrong.neighbours = (case(2), wrong.case)
    assert ledger.explain(wrong, h.info) is not None
    infos = [BackendInfo("b", "1.0")]
    assert ledger.unused([KEY], infos) == [] == ledger.unmarked().unused([KEY], infos)


def test_neighbours_without_an_instance_are_refused(tmp_path: Any) -> None:
    learned_support(tmp_path, "mismatch")
    (tmp_path / "x.toml").write_text((tmp_path / "x.toml").read_text() + f"neighbours = ['{case().inst.dumps()}']\n")
    with pytest.raises(FormatError, match="neighbours needs the instance"):
        load_ledger([tmp_path])


def test_what_a_stage_learns_counts_from_the_next_one_on() -> None:
    assert [stage(i) for i in (-3, 0, 15, 16, 31, 32, 63, 64, 127, 128)] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    h = learned_support()
    for _ in range(GAP):
        answer(h, case(33), Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    h.closed(KEY, 32)
    assert [id(c) in h.plan([c])[0] for c in (case(33), case(63), case(65))] == [False, False, True]


def test_learned_support_does_not_depend_on_order_and_survives_resume() -> None:
    """Answers of several units, in several orders, and taken back from the JSON of a record."""

    def teach(order: list[int]) -> LearnedSupport:
        h = learned_support()
        for first in order:
            for i in range(first, first + 4):
                c = case(i)
                c._types = KEY, ("f32", "bf16", "i8", "u8")[i % 4]
                if i % 4 == 0:
                    h.agreed([c])
                elif i % 4 == 1 or first >= 8:
                    answer(h, c, Status.UNSUPPORTED, Verdict.UNSUPPORTED)
                else:
                    answer(h, c, Status.REJECTED, Verdict.WRONGLY_REJECTED)
            told[first] = h.closed(KEY, first).to_json()
        return h

    def plans(h: LearnedSupport) -> list[str]:
        out = []
        for i in range(65, 97):
            c = case(i)
            c._types = KEY, ("f32", "bf16", "i8", "u8", "never asked")[i % 5]
            settled, alone = h.plan([c])
            out.append("settled" if id(c) in settled else "alone" if id(c) in alone else "together")
        return out

    told: dict[int, Any] = {}
    one, other, recalled = teach([0, 4, 8, 12, 16]), teach([16, 12, 0, 8, 4]), learned_support()
    for first, answers in told.items():
        recalled.recall(KEY, first, Answers.from_json(json.loads(json.dumps(answers))))
    assert plans(one) == plans(other) == plans(recalled)
    assert {"settled", "alone", "together"} == set(plans(one))


def test_op_versions_teach_each_other_nothing(tmp_path: Any) -> None:
    """An entry that holds of several is learnt of each by itself: else shards would ask what the whole run does not."""
    other = next(v for k, v in toy.versions.items() if k != KEY)
    h = learned_support(tmp_path, "wrongly_rejected")
    for _ in range(2 * SURE):
        c = case()
        assert plan(h, c) in ("alone", "settled")
        answer(h, c, Status.REJECTED, Verdict.KNOWN)
        h.closed(KEY, -1)
    assert plan(h, case()) == "settled"
    c = draw_case(other, 1, 0, 1, invalid=False, lazy=True)
    assert id(c) not in h.plan([c])[0]
    assert not h._of[other.key].known.entries


# -- traits


def taken_or_not(h: LearnedSupport, start: int, count: int, wanted: Any) -> None:
    """Answers of a unit: taken where ``wanted`` says so of the traits."""
    for i in range(start, start + count):
        c = case(i)
        if wanted(traits(c)):
            h.agreed([c])
        else:
            answer(h, c, Status.UNSUPPORTED, Verdict.UNSUPPORTED)
    h.closed(KEY, start)


def some_trait() -> str:
    """A trait that about half of the cases have."""
    counts = Counter(t for i in range(64) for t in traits(case(i)))
    return min(counts, key=lambda t: abs(counts[t] - 32))


def test_a_trait_with_which_nothing_is_taken_runs_one_in_twenty() -> None:
    h, trait = learned_support(), some_trait()
    taken_or_not(h, 0, 16, lambda t: trait not in t)
    later = [case(i) for i in range(16, 416)]
    has = {id(c): trait in traits(c) for c in later}
    for c in later:
        c.count = 1
    settled = {id(c) for c in later if id(c) in h.plan([c])[0]}
    mine = [id(c) for c in later if has[id(c)]]
    assert settled <= set(mine), "what was taken is asked"
    assert 0.01 < 1 - len(settled) / len(mine) < 0.12
    (why,) = {h.plan([c])[0][id(c)].message for c in later if id(c) in settled}
    assert why.startswith("as before: none was taken with ")


def test_a_trait_seen_too_rarely_still_runs() -> None:
    h, trait = learned_support(), some_trait()
    taken_or_not(h, 0, 4, lambda t: trait not in t)
    later = [case(i) for i in range(16, 80)]
    assert not any(h.plan([c])[0] for c in later)


def test_one_answer_with_a_trait_is_enough_to_ask_again() -> None:
    h, trait = learned_support(), some_trait()
    taken_or_not(h, 0, 16, lambda t: trait not in t)
    with_it = next(c for c in map(case, range(16, 400)) if trait in traits(c) and id(c) in h.plan([c])[0])
    h.agreed([next(c for c in map(case, range(32, 400)) if trait in traits(c))])
    h.closed(KEY, 16)
    again = case(with_it.index + 64)
    again.inst = with_it.inst
    assert id(again) not in h.plan([again])[0]


def test_traits_are_kept_in_the_records() -> None:
    h, trait = learned_support(), some_trait()
    taken_or_not(h, 0, 16, lambda t: trait not in t)
    told = h._of[KEY]._later[1]
    resumed = LearnedSupport(BackendInfo("b"))
    resumed.recall(KEY, 0, Answers.from_json(json.loads(json.dumps(told.to_json()))))
    for c in map(case, range(16, 200)):
        assert (id(c) in h.plan([c])[0]) == (id(c) in resumed.plan([c])[0])


def test_where_all_is_taken_at_first_no_traits_are_counted() -> None:
    h = learned_support()
    taken_or_not(h, 0, 16, lambda t: True)
    assert not h._of[KEY]._later[1].traits
