"""The comparator: the fifteen holes that other comparators had, each class at its bound, and the plain oracle."""

from types import SimpleNamespace

import numpy as np
import pytest

from harness import tolerance as classes
from harness.compare import blame, groups, judge, look
from harness.compare.statistics import Pool
from harness.core.dtypes import BF16, BOOL, F8E4M3FN, F16, F32, F64, FLOATS, I64, U8, dtype, float_max, of
from harness.core.outcome import Outcome, Status, TypeOnly, Verdict
from native_ref import compare
from suites.meta import plain_compare

F = (F16, F32, BF16)


def expect(value, wide=None, error=None, context=None, dt=None):
    """An expected output; ``value`` is rounded from ``wide`` when that is given."""
    if not isinstance(value, (np.ndarray, list, dict, type(None))):
        value = np.asarray(value)
    d = dt or (of(value) if isinstance(value, np.ndarray) else F32)
    error = error or classes.exact()

    def made():
        return context or classes.Context({}, {}, wide if wide is not None else np.asarray(value, np.float64), d)

    return SimpleNamespace(value=value, wide=wide, dtype=d, error=error, context=made, open=None)


def wide_of(h, d, error, **kw):
    h = np.asarray(h, np.float64)
    return expect(h.astype(d.np), h, error, **kw)


def verdict(e, *actual, **kw):
    es = e if isinstance(e, list) else [e]
    return judge(es, Outcome(Status.VALUE, list(actual)), **kw)


def kind(e, *actual, **kw):
    j = verdict(e, *actual, **kw)
    assert j.verdict is Verdict.MISMATCH, j
    numbers = j.numbers()
    assert numbers.items() <= j.diff().items()  # every mismatch can be described, and measured alone
    return j.kind


def agrees(e, *actual, **kw):
    return verdict(e, *actual, **kw).verdict is Verdict.AGREE


def test_the_class_of_a_rule_is_its_name_alone():
    e = expect(np.float32([1, 2]), error=classes.copied())
    j = verdict(e, np.float32([1, 3]))
    assert (j.klass, j.formula) == ("EXACT", e.error.formula)
    assert "copied" in j.formula


CLASSES = {
    "exact": classes.exact(),
    "rounded": classes.rounded(2),
    "bounded": classes.bounded(lambda c: 4 * c.ulp, "4 ulp"),
    "accumulates": classes.accumulates(3),
}


def with_class(h, d, name):
    h = np.asarray(h, np.float64)
    ctx = classes.Context({"x": h}, {}, h, d, rerun=lambda i: np.abs(i["x"]))
    return expect(h.astype(d.np), h, CLASSES[name], ctx)


# -- 1 and 2: special values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", F, ids=str)
@pytest.mark.parametrize("name", CLASSES)
def test_01_nan_meets_only_nan(d, name):
    e = with_class([1.0, np.nan, 2.0], d, name)
    assert agrees(e, np.array([1, np.nan, 2], d.np))
    assert kind(e, np.array([1, 3, 2], d.np)) == "nan"
    assert kind(e, np.array([1, np.inf, 2], d.np)) == "nan"
    e = with_class([1.0, 3.0, 2.0], d, name)
    assert kind(e, np.array([1, np.nan, 2], d.np)) == "nan"


@pytest.mark.parametrize("d", F, ids=str)
@pytest.mark.parametrize("name", CLASSES)
def test_02_infinity_meets_only_the_same_infinity(d, name):
    top = float_max(d)
    e = with_class([np.inf, 1.0], d, name)
    assert agrees(e, np.array([np.inf, 1], d.np))
    for wrong in (-np.inf, top, 0.0):
        assert kind(e, np.array([wrong, 1], d.np)) == "inf"
    assert kind(with_class([3.0, 1.0], d, name), np.array([np.inf, 1], d.np)) == "inf"
    if name == "exact":
        assert kind(with_class([top, 1.0], d, name), np.array([np.inf, 1], d.np)) == "inf"


def test_02_near_the_overflow_threshold_infinity_is_within_the_bound():
    h = float_max(F16) + 15.0  # half an ulp of 32 is 16: rounds to the maximum, one ulp reaches infinity
    e = wide_of([h], F16, classes.rounded(1))
    assert agrees(e, np.array([np.inf], np.float16))
    assert agrees(e, np.array([65504], np.float16))
    assert kind(wide_of([h], F16, classes.rounded(0.5)), np.array([-np.inf], np.float16)) == "inf"
    far = wide_of([60000.0], F16, classes.rounded(1))
    assert kind(far, np.array([np.inf], np.float16)) == "inf"


# -- 3 to 7 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [F32, F16, I64, U8, BOOL, dtype("u4")], ids=str)
def test_03_all_zero_is_not_a_result(d):
    v = np.array([1, 1, 0, 1]).astype(d.np)
    assert verdict(expect(v), np.zeros(4, d.np)).verdict is Verdict.MISMATCH


def test_04_integers_are_never_floats():
    big = np.array([2**53 + 1, 2**63 - 1, -(2**63)], np.int64)
    for i, delta in ((0, -1), (1, -1), (2, 1)):
        off = big.copy()
        off[i] += delta
        assert kind(expect(big, error=classes.rounded(1)), off) == "integer"
        assert verdict(expect(big), off).diff()["max_abs"] == 1
    assert kind(expect(np.array([100000], np.int32)), np.array([100050], np.int32)) == "integer"
    u = np.array([2**64 - 1, 0], np.uint64)
    assert kind(expect(u), np.array([0, 2**64 - 1], np.uint64)) == "integer"
    assert agrees(expect(big), big.copy())


@pytest.mark.parametrize("shape", [(), (1,), (2, 1)])
def test_the_error_of_an_integer_is_never_negative(shape):
    low = np.full(shape, np.iinfo(np.int64).min)
    j = verdict(expect(np.zeros(shape, np.int64)), low)
    assert j.diff()["max_abs"] == 2.0**63


@pytest.mark.parametrize("d", [F16, F32, F64, I64], ids=str)
def test_05_lowest_of_the_type(d):
    lowest = np.array([np.finfo(d.np).min if d.kind == "f" else np.iinfo(d.np).min]).astype(d.np)
    assert verdict(expect(np.array([0]).astype(d.np)), lowest).verdict is Verdict.MISMATCH
    assert agrees(expect(lowest), lowest.copy())


def test_06_every_output_counts():
    a, b = np.ones(3, np.float32), np.zeros(3, np.float32)
    es = [expect(a), expect(a)]
    assert kind(es, None, a) == "missing"
    assert kind(es, a, None) == "missing"
    assert kind(es, a) == "missing"
    assert kind(es, a, b) == "value"
    assert verdict(es, a, b).output == 1
    assert kind(es, a, a, a) == "type"
    assert kind(es, a, [a]) == "type"


def test_07_odd_sizes():
    for shape in ((), (1,), (0,), (0, 3), (5,)):
        v = np.full(shape, 2.5, np.float32)
        assert agrees(expect(v), v.copy())
        if v.size:
            assert kind(expect(v), np.asarray(v + 1)) == "value"
    assert kind(expect(np.zeros((0, 3), np.float32)), np.zeros((0, 4), np.float32)) == "shape"
    assert kind(expect(np.float32(1)), np.ones(1, np.float32)) == "shape"


# -- 8 to 11: what correlation would not see --------------------------------------------------------------------


def normal(shape=(6, 7), d=F32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(d.np)


@pytest.mark.parametrize(
    ("shape", "change", "pattern"),
    [
        ([2, 3], lambda v: v.astype(np.float64), None),  # the element type alone
        ([3, 3], lambda v: v.astype(np.float64), None),
        ([2, 3], lambda v: v.T.astype(np.float64), "transposed"),
        ([2, 3], lambda v: v.T, "transposed"),
        ([2, 3], lambda v: v.reshape(3, 2), "reshaped"),
        ([2, 3], lambda v: np.zeros((3, 2), v.dtype), "extents in another order"),
        ([2, 3], lambda v: v.reshape(6), "reshaped"),
    ],
)
def test_a_pattern_of_shape_is_claimed_where_the_elements_show_it(shape, change, pattern):
    v = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    j = verdict(expect(v), np.ascontiguousarray(change(v)))
    assert j.verdict is Verdict.MISMATCH
    assert j.diff()["pattern"] == pattern


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (lambda v: v * 2, "scaled by 2"),
        (lambda v: v + 1, "shifted by 1"),
        (lambda v: -v, "scaled by -1"),
        (lambda v: v * 0, "all zero"),
    ],
)
def test_08_scaled_and_shifted(change, pattern):
    v = normal()
    j = verdict(expect(v), change(v).astype(np.float32))
    assert j.verdict is Verdict.MISMATCH
    assert j.diff()["pattern"] == pattern


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (lambda v: np.ascontiguousarray(v.T), "transposed"),
        (lambda v: np.roll(v, 1, 1), "rolled by 1 along axis 1"),
        (lambda v: v[::-1].copy(), "reversed along axis 0"),
    ],
)
def test_09_rearranged(change, pattern):
    v = normal((5, 5))
    j = verdict(expect(v), change(v))
    assert j.verdict is Verdict.MISMATCH
    assert j.diff()["pattern"] == pattern


def test_09_transposed_into_another_shape():
    v = normal((3, 4))
    assert verdict(expect(v), np.ascontiguousarray(v.T)).diff()["pattern"] == "transposed"


@pytest.mark.parametrize("name", CLASSES)
def test_10_one_in_a_million(name):
    h = normal((1000, 1000)).astype(np.float64)
    e = with_class(h, F32, name)
    a = h.astype(np.float32)
    assert agrees(e, a)
    a[777, 3] *= 1 + 1e-5
    j = verdict(e, a)
    assert j.kind == "value"
    assert j.diff()["count"] == 1
    assert j.diff()["elements"][0]["index"] == [777, 3]
    assert j.diff()["pattern"] == "one element"


def test_11_type_and_shape_come_before_values():
    v = np.array([1, 2, 3, 4], np.float32)
    assert kind(expect(v), v.view(np.int32)) == "dtype"
    assert kind(expect(v), v.astype(np.float64)) == "dtype"
    assert kind(expect(v), v.reshape(2, 2)) == "shape"
    assert kind(expect(v), v[None]) == "shape"
    assert kind(expect(np.array(["1"], object)), np.array([1], np.int64)) == "dtype"


# -- 12 and 13 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["exact", "rounded", "bounded"])
def test_12_the_sign_of_zero_counts_where_the_spec_fixes_it(name):
    loose = with_class([0.0, 1.0], F32, name)
    strict = expect(loose.value, loose.wide, CLASSES[name].signed(), loose.context())
    minus = np.array([-0.0, 1], np.float32)
    assert agrees(loose, minus)
    assert kind(strict, minus) == "zero_sign"
    assert agrees(strict, np.array([0.0, 1], np.float32))


def test_13_types_without_infinity():
    top = float_max(F8E4M3FN)
    e = wide_of([1.0, top], F8E4M3FN, classes.rounded(1))
    assert agrees(e, np.array([1, top]).astype(F8E4M3FN.np))
    assert kind(e, np.array([np.nan, top]).astype(F8E4M3FN.np)) == "nan"
    over = wide_of([1.0, 480.0], F8E4M3FN, classes.rounded(1))  # beyond 448: NaN is what overflow gives here
    assert agrees(over, np.array([1, np.nan]).astype(F8E4M3FN.np))


# -- 14 and 15: the numbers arrive and are exact ----------------------------------------------------------------


def test_14_tolerances_reach_the_comparison():
    h = np.array([1.0, 2.0])
    a = h.astype(np.float32)
    a[0] = np.nextafter(np.nextafter(a[0], np.float32(9)), np.float32(9))
    for k, want in ((0.5, False), (1, False), (1.9, False), (2, True), (3, True)):
        assert agrees(wide_of(h, F32, classes.rounded(k)), a) is want, k
    for width, want in ((1e-7, False), (2e-7, False), (3e-7, True)):
        assert agrees(wide_of(h, F32, classes.bounded(lambda c, w=width: w, "w")), a) is want, width
    for terms, want in ((1, False), (40, True)):
        ctx = classes.Context({"x": h}, {}, h, F32, rerun=lambda i: np.abs(i["x"]))
        far = a.copy()
        far[0] = 1 + 20 * 2.0**-24
        assert agrees(expect(a, h, classes.accumulates(terms), ctx), far) is want, terms
    steps = expect(np.array([5, 6], np.int8), error=classes.quantised(1))
    assert agrees(steps, np.array([6, 5], np.int8))
    assert kind(steps, np.array([7, 6], np.int8)) == "integer"


def test_14_the_profile_reaches_the_comparison():
    h = np.array([1.0])
    ctx = lambda: classes.Context({"x": h}, {}, h, F16, rerun=lambda i: np.abs(i["x"]) * 4)  # noqa: E731
    e = expect(h.astype(np.float16), h, classes.accumulates(16))
    e.context = ctx
    a = np.array([1.03], np.float16)
    assert kind(e, a) == "value"
    assert agrees(e, a, acc={"f16": "f16"})
    tiny = expect(np.array([2.0**-24, 2.0**-20], np.float16))
    zero = np.zeros(2, np.float16)
    assert kind(tiny, zero) == "value"
    assert agrees(tiny, zero, flushes=("f16",))
    assert kind(tiny, np.array([0, 2.0**-20], np.float16), flushes=("f16",)) == "flush"  # all or none
    assert kind(tiny, zero, flushes=("f32",)) == "value"


def test_14_what_rounds_to_zero_is_not_flushed():
    h = np.array([2.0**-149, 1e-60, -1e-70], np.float64)  # of these the first alone is a number of f32
    e = expect(h.astype(np.float32), h, classes.rounded(1))
    for first in (2.0**-149, 0):
        assert agrees(e, np.array([first, 0, -0.0], np.float32), flushes=("f32",))


def test_14_a_result_that_rounds_to_the_smallest_normal_need_not_be_flushed():
    tiny = 2.0**-126
    h = np.array([1e-38, np.nextafter(tiny, 0)], np.float64)  # the second is tiny before rounding, not after
    e = expect(h.astype(np.float32), h, classes.rounded(1))
    for first in (1e-38, 0):
        for second in (tiny, 0):
            assert agrees(e, np.array([first, second], np.float32), flushes=("f32",)), (first, second)
    e = expect(np.array([1e-38, 2e-39], np.float32))
    assert kind(e, np.array([1e-38, 0], np.float32), flushes=("f32",)) == "flush"  # both are subnormal


def test_14_a_normal_number_where_a_subnormal_is_expected_tells_nothing_of_flushing():
    h = np.array([1e-40, 1e-40])
    e = expect(h.astype(np.float32), h, classes.bounded(lambda c: 1e-7, "1e-7"))
    assert agrees(e, np.array([0, 3e-8], np.float32), flushes=("f32",))
    assert kind(e, np.array([0, 1e-40], np.float32), flushes=("f32",)) == "flush"


def test_14_flushed_elements_do_not_enter_the_error_of_wrong_ones():
    e = wide_of([2.0**-130, 1.0], F32, classes.rounded(2))
    j = verdict(e, np.array([0, 1 + 2.0**-20], np.float32), flushes=("f32",))
    assert j.kind == "value"
    assert j.diff()["count"] == 1
    assert j.diff()["max_ulp"] == 8
    told = verdict(e, np.array([0, 1 + 2.0**-20], np.float32)).diff()
    assert told["count"] == 2
    assert told["max_ulp"] > 1e5


def test_14_flushed_inputs_are_the_profile_s_too():
    x = np.array([1e-39, 2.0])  # the first is subnormal in f32, the product is not
    ctx = lambda: classes.Context({"x": x}, {}, x * 1e10, F32, rerun=lambda i: i["x"] * 1e10)  # noqa: E731
    e = expect((x * 1e10).astype(np.float32), x * 1e10, classes.rounded(1))
    e.context = ctx
    a = np.array([0, 2e10], np.float32)
    assert kind(e, a) == "value"
    assert agrees(e, a, flushes=("f32",))
    assert kind(e, np.array([0, 0], np.float32), flushes=("f32",)) == "value"


def test_14_flushing_excuses_no_sign_of_a_zero():
    x = np.array([0.0, 1e-39, 2.0])
    ctx = lambda: classes.Context({"x": x}, {}, -x, F32, rerun=lambda i: -i["x"])  # noqa: E731
    e = expect((-x).astype(np.float32), -x, classes.exact(signed_zero=True))
    e.context = ctx
    for second in (-1e-39, -0.0, 0.0):  # kept, flushed, flushed without its sign
        assert agrees(e, np.array([-0.0, second, -2], np.float32), flushes=("f32",)), second
        assert kind(e, np.array([0.0, second, -2], np.float32), flushes=("f32",)) == "zero_sign", second


def at_bound():
    one = np.float64(1)
    u = 2.0**-23
    yield "ROUNDED(1)", classes.rounded(1), 1 + u, 1 + 2 * u, None
    yield "ROUNDED(3)", classes.rounded(3), 1 + 3 * u, 1 + 4 * u, None
    yield "BOUNDED", classes.bounded(lambda c: 5 * u, "5u"), 1 + 5 * u, 1 + 6 * u, None
    yield "COMPOSED", classes.composed(lambda c: 7 * u, "7u"), 1 + 7 * u, 1 + 8 * u, None
    k = 62.0
    g = k * u / 2 / (1 - k * u / 2) * 4  # gamma_62 on a scale of 4, plus one ulp
    inside = np.floor((g + u) / u) * u
    yield "DOT", classes.accumulates(60), 1 + inside, 1 + inside + u, 4.0
    assert one == 1


@pytest.mark.parametrize(("name", "error", "last", "beyond", "scale"), list(at_bound()), ids=[n[0] for n in at_bound()])
def test_15_at_the_bound_passes_and_the_next_fails(name, error, last, beyond, scale):
    h = np.array([1.0])
    ctx = classes.Context({"x": h}, {}, h, F32, rerun=lambda i: np.full(1, scale or 1.0))
    e = expect(h.astype(np.float32), h, error, ctx)
    assert agrees(e, np.array([last], np.float32))
    j = verdict(e, np.array([beyond], np.float32))
    assert j.verdict is Verdict.MISMATCH
    assert j.diff()["factor"] > 1
    low = expect(-h.astype(np.float32), -h, error, classes.Context({"x": h}, {}, -h, F32, rerun=ctx._rerun))
    assert agrees(low, -np.array([last], np.float32))
    assert not agrees(low, -np.array([beyond], np.float32))


def test_15_quantised_ties():
    real = np.array([2.5, 2.4, -1.5, 7.4999])
    e = expect(np.array([2, 2, -2, 7], np.int8), error=classes.quantised(0, real=lambda c: real, tie=0.001))
    assert agrees(e, np.array([3, 2, -1, 8], np.int8))
    assert kind(e, np.array([2, 3, -2, 7], np.int8)) == "integer"
    assert kind(e, np.array([4, 2, -2, 7], np.int8)) == "integer"


def test_quantised_freedom_lies_around_the_real_result_not_around_the_reference():
    real = np.array([2.5, 2.5, -1.5, 7.4999])
    e = expect(np.array([3, 2, -2, 7], np.int8), error=classes.quantised(real=lambda c: real, tie=0.001))
    assert agrees(e, np.array([2, 3, -1, 8], np.int8)), "the other neighbour of every tie"
    for i, beyond in enumerate((4, 1, -3, 6)):
        a = e.value.copy()
        a[i] = beyond
        assert kind(e, a) == "integer", "one step beyond the reference on the side away from the tie"


def test_quantised_freedom_of_more_than_half_a_step_is_counted_from_the_real_result():
    real = np.array([31722.26, 31722.26, 40000.0])  # the reference multiplies by half the bits of the factor
    e = expect(np.array([31721, 31721, 32767], np.int16), error=classes.quantised(0, real=lambda c: real, tie=1.22))
    for a in (31721, 31722, 31723):  # 31721.04 and 31723.48, rounded
        assert agrees(e, np.array([a, 31722, 32767], np.int16))
    for a in (31720, 31724):
        assert kind(e, np.array([a, 31722, 32767], np.int16)) == "integer", a
    assert kind(e, np.array([31721, 31721, 32766], np.int16)) == "integer", "far beyond the range there is no freedom"


def test_quantised_freedom_ends_at_what_the_result_is_clamped_to():
    real = np.array([9.8, 10.2, 30.0, -5.0])
    e = expect(
        np.array([10, 10, 10, 0], np.int8),
        error=classes.quantised(real=lambda c: real, tie=1.5, clamp=lambda c: (0.0, 10.3, 0.0)),
    )
    for a in ([8, 9, 10, 0], [10, 10, 10, 0]):
        assert agrees(e, np.array(a, np.int8)), a
    for i, beyond in enumerate((11, 8, 9, 1)):
        a = e.value.copy()
        a[i] = beyond
        assert kind(e, a) == "integer", (i, beyond)
    near = classes.quantised(real=lambda c: np.array([30.0]), tie=0.1, clamp=lambda c: (0.0, 10.5, 2.0**-16))
    for a in (10, 11):  # a limit next to a tie is rounded to either side
        assert agrees(expect(np.array([11], np.int8), error=near), np.array([a], np.int8))


# -- the native kernel against the plain rules ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_native_kernel_and_plain_rules_agree(d):
    rng = np.random.default_rng(7)
    top, low = float_max(d), 2.0 ** -(d.frac + 3)
    pool = np.array([0.0, -0.0, 1, -1, 1 + low, top, -top, np.inf, -np.inf, np.nan, 1e-30, 2.0**-140, 2.0**-24, 3.5])
    for trial in range(40):
        w = rng.choice(pool, 37) * rng.choice([1, 1, 1 + low, 1 - low, 1.07], 37)
        if trial % 2:
            w = rng.normal(size=37) * 2.0 ** rng.integers(-12, 12, 37)
        with np.errstate(all="ignore"):
            a = (w * rng.choice([1, 1, 1, 1 + 2 * low, 1 + 8 * low, -1], 37)).astype(d.np)
        a[rng.integers(37)] = rng.choice(pool[:4]).astype(d.np)
        bound = rng.choice([0.0, 1e-3, 0.1, np.inf], 37) if trial % 3 else float(rng.choice([0.0, 0.01]))
        kw = {"signed_zero": bool(trial & 4), "flush": bool(trial & 8)}
        ulps = float(rng.choice([0, 0.5, 1, 3]))
        want = plain_compare.bad(a, w, bound, ulps, **kw)
        for detail in (False, True):
            c = compare(a, w, bound, ulps=ulps, detail=detail, **kw)
            assert c.bad == len(want), (d, trial, want)
            assert c.first == (want[0] if want else -1)
        assert np.flatnonzero(c.mask.ravel()).tolist() == want


# -- sets, choices, containers, strings, complex, types ---------------------------------------------------------


def test_any_order_permutes_all_outputs_the_same_way():
    v, n = np.array([3.0, 1, 2], np.float32), np.array([1, 5, 2], np.int64)
    es = [expect(v, error=classes.any_order(0)), expect(n, error=classes.any_order(0))]
    p = [2, 0, 1]
    assert agrees(es, v[p], n[p])
    assert kind(es, v[p], n) == "value"
    assert kind(es, np.array([3, 1, 1], np.float32), n) == "value"
    rows = np.array([[1.0, 2], [3, 4], [np.nan, 0]], np.float32)
    assert agrees(expect(rows, error=classes.any_order(0)), rows[[2, 1, 0]])
    assert kind(expect(rows, error=classes.any_order(0)), rows[:, ::-1].copy()) in ("value", "nan")
    assert agrees(expect(np.array(["b", "a"], object), error=classes.any_order()), np.array(["a", "b"], object))


def test_any_order_with_a_tolerance():
    h = np.array([3.0, 1.0, 2.0])
    e = wide_of(h, F32, classes.any_order(0, within=classes.rounded(2)))
    near = np.nextafter(h.astype(np.float32), np.float32(9))[[1, 2, 0]]
    assert agrees(e, near)
    assert kind(e, near + 1) == "value"


def test_accepted_choices():
    x = np.array([1.0, 5, 5, 2])
    e = expect(np.array(1), error=classes.accepted(lambda c, a: x[a] == x.max(), "any index of the maximum"))
    assert agrees(e, np.array(2))
    assert kind(e, np.array(3)) == "choice"


def test_containers():
    a, b = np.ones(2, np.float32), np.zeros(3, np.float32)
    e = expect([a, b])
    assert agrees(e, [a, b])
    assert kind(e, [a]) == "length"
    assert kind(e, [b, a]) == "shape"
    assert kind(e, a) == "type"
    assert kind(e, [a, b + 1]) == "value"
    assert kind(e, None) == "missing"
    assert agrees(expect(None), None)
    assert kind(expect(None), a) == "type"
    assert agrees(expect([]), [])
    m = expect({"x": 1.0, 2: 0.5})
    assert agrees(m, {"x": 1.0, 2: 0.5})
    assert kind(m, {"x": 1.0, 2: 0.25}) == "value"
    assert kind(m, {"x": 1.0}) == "type"


def test_strings_and_bytes():
    e = expect(np.array([["a", "ä"]], object))
    assert agrees(e, np.array([["a", "ä"]], object))
    assert agrees(e, np.array([[b"a", "ä".encode()]], object))
    assert kind(e, np.array([["a", "b"]], object)) == "string"
    assert verdict(e, np.array([["a", "b"]], object)).diff()["count"] == 1


def test_complex_parts_are_judged_by_the_modulus():
    h = np.array([1e4 + 1e-9j, 2j])
    e = expect(h.astype(np.complex64), h, classes.rounded(1))
    assert agrees(e, np.array([1e4 + 1e-4j, 2j], np.complex64))
    assert kind(e, np.array([1e4 + 1e-2j, 2j], np.complex64)) == "value"
    assert kind(e, np.array([1e4, -2j], np.complex64)) == "value"
    assert kind(expect(h.astype(np.complex64)), np.array([1e4, np.nan], np.complex64)) in ("nan", "value")


def test_inferred_types():
    e = expect(np.zeros((2, 3), np.float32))
    for good in (TypeOnly("f32", (2, 3)), TypeOnly("f32", (None, 3)), TypeOnly(None, ("n", 3)), TypeOnly("f32", None)):
        assert agrees(e, good)
    assert kind(e, TypeOnly("f16", (2, 3))) == "dtype"
    huge = expect(np.broadcast_to(np.float32(0), (1 << 27,)))  # right in type, and nobody saw the rest
    assert verdict(huge, TypeOnly("f32", (1 << 27,))).verdict is Verdict.UNKNOWN
    assert kind(e, TypeOnly("f32", (3, 2))) == "shape"
    assert kind(e, TypeOnly("f32", (2, 3, 1))) == "shape"


# -- instances that say nothing ---------------------------------------------------------------------------------


def test_insensitive_results_are_uninformative():
    h = np.linspace(1, 2, 64)
    wild = classes.bounded(lambda c: np.full(64, 0.5), "0.5")
    a = (h + 0.4).astype(np.float32)
    assert verdict(wide_of(h, F32, wild), a).verdict is Verdict.UNINFORMATIVE
    assert verdict(wide_of(h, F32, wild), h.astype(np.float32)).verdict is Verdict.AGREE  # within half an ulp anyway
    zeros = with_class(np.zeros(64), F32, "accumulates")
    assert verdict(zeros, np.zeros(64, np.float32)).verdict is Verdict.UNINFORMATIVE
    assert agrees(expect(np.zeros(64, np.float32)), np.zeros(64, np.float32))  # an exact zero is a result
    assert kind(zeros, np.ones(64, np.float32)) == "value"


def test_several_outputs_are_uninformative_only_if_each_is():
    zeros = with_class(np.zeros(64), F32, "accumulates")
    none, some = np.zeros(64, np.float32), np.arange(64, dtype=np.float32)
    for outs, seen in (((none, none), 2), ((none, some), 1), ((some, none), 1)):
        expected = [zeros if a is none else expect(some) for a in outs]
        assert verdict(expected, *outs).verdict is (Verdict.UNINFORMATIVE if seen == 2 else Verdict.AGREE)
        assert look(expected, outs, ()) == seen
        assert look(expected, outs[:1], ()) == look(expected, (outs[0], -some - 1), ()) == 0  # all have to be right
    assert verdict([]).verdict is Verdict.AGREE
    assert look([], [], ()) == 0


def test_overflowing_partial_sums_bind_nothing():
    h = np.array([1.0, 1.0])
    ctx = classes.Context({}, {}, h, F32, rerun=lambda i: np.array([1e39, 1.0]))
    e = expect(h.astype(np.float32), h, classes.accumulates(3), ctx)
    for v in (np.nan, np.inf, 7.0):
        assert verdict(e, np.array([v, 1], np.float32)).verdict is not Verdict.MISMATCH
        assert verdict(e, np.array([1, v], np.float32)).verdict is Verdict.MISMATCH


def test_a_sum_that_overflows_only_in_our_order_binds_nothing():
    """1e308 + 1e308 - 1e308 is in range; an infinite input is not a matter of order."""

    def total(x):
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array([x[0] + x[1] + x[2]])

    for x, want in (([1e308, 1e308, -1e308], Verdict.AGREE), ([np.inf, 1.0, 1.0], Verdict.MISMATCH)):
        x = np.array(x)
        ctx = classes.Context({"x": x}, {}, total(x), F64, rerun=lambda i: total(i["x"]))
        e = expect(total(x), total(x), classes.accumulates(3), ctx)
        assert verdict(e, np.array([1e308])).verdict is want


def test_a_bound_that_fails_is_no_verdict():
    e = wide_of([1.0, 2.0], F32, classes.bounded(lambda c: 1 / 0, "broken"))
    j = verdict(e, np.array([1, 3], np.float32))
    assert j.verdict is Verdict.UNKNOWN
    assert "ZeroDivisionError" in j.detail


# -- random ops -------------------------------------------------------------------------------------------------


def random_output(error, params, a, d=F32):
    return expect(np.zeros(a.shape, d.np), np.zeros(a.shape), error, classes.Context({}, params, np.zeros(a.shape), d))


RANDOM = {
    "uniform": (classes.statistical("uniform"), {"low": -1.0, "high": 3.0}, lambda g, n: g.uniform(-1, 3, n)),
    "normal": (
        classes.statistical("normal", std="scale"),
        {"mean": 2.0, "scale": 0.5},
        lambda g, n: g.normal(2, 0.5, n),
    ),
    "bernoulli": (classes.statistical("bernoulli"), {"p": 0.2}, lambda g, n: (g.random(n) < 0.2) * 1.0),
}


@pytest.mark.parametrize("name", RANDOM)
def test_draws_follow_their_distribution(name):
    error, params, draw = RANDOM[name]
    for seed in range(20):
        a = draw(np.random.default_rng(seed), 2000).astype(np.float32)
        assert agrees(random_output(error, params, a), a)
        shifted = 1 - a if name == "bernoulli" else a * 0.7
        assert kind(random_output(error, params, shifted), shifted) == "distribution"


def test_draws_of_categories_follow_their_row():
    weights = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    error = classes.statistical("categorical", weights=lambda c: weights)
    g = np.random.default_rng(0)
    a = np.stack([g.choice(3, 400, p=w) for w in weights]).astype(np.int32)
    d = dtype("i32")
    e = expect(np.zeros_like(a), None, error, classes.Context({}, {}, np.zeros(a.shape), d))
    assert agrees(e, a)
    assert kind(e, a[::-1].copy()) == "distribution"  # the rows exchanged
    assert kind(e, a + 1) == "distribution"


def test_draws_outside_constant_or_nan_are_refused():
    error, params, _ = RANDOM["uniform"]
    for a in (np.full(64, 0.5), np.full(64, 3.5), np.full(64, np.nan)):
        a = a.astype(np.float32)
        assert kind(random_output(error, params, a), a) == "distribution"


def test_pools_find_what_single_cases_cannot():
    pool, fair = Pool(), Pool()
    error, params, _ = RANDOM["normal"]
    for seed in range(200):
        g = np.random.default_rng(seed)
        for p, mean in ((pool, 2.08), (fair, 2.0)):
            a = g.normal(mean, 0.5, 50).astype(np.float32)
            j = verdict(random_output(error, params, a), a)
            assert j.verdict is Verdict.AGREE
            p.add(("op", "f32", "b"), j.sample)
    assert not fair.failures()
    assert pool.failures()
    same = Pool()  # one stream a hundred times over is one sample, not a hundred
    a = np.random.default_rng(1).normal(2, 0.5, 300).astype(np.float32)
    for n in range(100):
        b = a[: 100 + n]
        same.add(("op",), verdict(random_output(error, params, b), b).sample)
    assert not same.failures()
    assert sum(p.size for p in same._streams(same.samples["op",])) == 199


# -- the numbers of a mismatch ----------------------------------------------------------------------------------


def test_diff_has_the_record_s_fields():
    h = normal((4, 6), seed=3).astype(np.float64)
    e = wide_of(h, F32, classes.rounded(1))
    a = h.astype(np.float32)
    a[1, 2] *= 1.01
    a[3, 5] = np.inf
    d = verdict(e, a).diff()
    assert (d["count"], d["size"], d["shape"], d["got_shape"], d["got_dtype"]) == (2, 24, [4, 6], [4, 6], "f32")
    assert d["max_ulp"] == "inf"
    assert d["factor"] == "inf"
    assert d["ulp_histogram"]["inf"] == 1
    assert sum(d["ulp_histogram"].values()) == 24
    assert d["map"] == {"shape": [4, 6], "cells": "0" * 8 + "1" + "0" * 14 + "1"}
    first = d["elements"][0]
    assert first["why"] == "first"
    assert first["index"] == [1, 2]
    assert first["expected_hex"] == f"0x{int(e.value[1, 2].view(np.uint32)):08x}"
    assert d["elements"][1]["index"] == [3, 5]
    assert d["elements"][1]["actual"] == "inf"


@pytest.mark.parametrize(
    ("where", "pattern"),
    [
        ((slice(None), 2), "one index of axis 1 (2)"),
        ((slice(0, 1),), "one index of axis 0 (0)"),
        ((slice(None), slice(None)), "everywhere"),
    ],
)
def test_places(where, pattern):
    v = normal((8, 5))
    a = v.copy()
    a[where] = normal((8, 5), seed=9)[where]
    assert verdict(expect(v), a).diff()["pattern"] == pattern


def test_every_fourth_and_the_border_and_the_tail():
    v, other = normal((40,)), normal((40,), seed=5)
    a = v.copy()
    a[3::4] = other[3::4]
    assert verdict(expect(v), a).diff()["pattern"] == "every 4th element"
    a = v.copy()
    a[30:] = other[30:]
    assert verdict(expect(v), a).diff()["pattern"] == "the tail"
    v, other = normal((6, 6)), normal((6, 6), seed=5)
    a = other.copy()
    a[1:-1, 1:-1] = v[1:-1, 1:-1]
    assert verdict(expect(v), a).diff()["pattern"] == "the border"


def test_bias_and_condition_are_reported():
    h = normal((10, 10)).astype(np.float64)
    e = wide_of(h, F32, classes.bounded(lambda c: 1e-4 * np.abs(c.wide), "1e-4"))
    d = verdict(e, (h + 1e-3 * (1 + 0.1 * normal((10, 10), seed=4))).astype(np.float32)).diff()
    assert d["bias_z"] > 20
    assert d["bound_relative"] == pytest.approx(1e-4)
    fair = verdict(e, (h + 1e-2 * normal((10, 10), seed=4)).astype(np.float32)).diff()
    assert abs(fair["bias_z"]) < 5


def test_nearly_right_is_no_rearrangement():
    v = (1 + 1e-9 * normal((5, 5))).astype(np.float64)
    assert verdict(expect(v), v + 1e-8).diff()["pattern"] == "everywhere"


def test_large_maps_are_thinned():
    v = np.zeros((500, 300), np.float32)
    a = v.copy()
    a[499, 299] = 1
    m = verdict(expect(v), a).diff()["map"]
    assert np.prod(m["shape"]) == len(m["cells"]) <= 8192
    assert m["cells"].endswith("1")
    assert m["cells"].count("1") == 1


# -- blame ------------------------------------------------------------------------------------------------------


def test_blame_names_who_is_alone():
    A, M = Verdict.AGREE, Verdict.MISMATCH
    assert blame({"a": A, "b": A, "c": M}).alone == "c"
    assert blame({"a": M, "b": "mismatch"}).alone == "reference"
    assert blame({"x-ref": M, "x-opt": M}).alone == "reference"
    assert blame({"x-ref": M, "x-opt": M}, lambda n: n[0]).alone is None  # one code base is one opinion
    assert blame({"a": M}).alone is None
    assert blame({"a": A, "b": A}).alone is None


def test_groups_put_those_with_the_same_answer_together():
    e = [expect(np.ones(3, np.float32))]
    two = Outcome(Status.VALUE, [np.full(3, 2, np.float32)])
    three = Outcome(Status.VALUE, [np.full(3, 3, np.float32)])
    one = Outcome(Status.VALUE, [np.ones(3, np.float32)])
    out = groups(e, {"a": two, "b": two, "c": three, "d": one}, {"d": Verdict.AGREE})
    assert sorted(map(sorted, out)) == [["a", "b"], ["c"], ["d", "reference"]]


@pytest.mark.parametrize(
    ("key", "dtype"),
    [
        ("onnx/QuantizeLinear/25", "f8e5m2"),
        ("onnx/QuantizeLinear/25", "f4e2m1"),
        ("onnx/Cast/25", "f8e4m3fn"),
        ("onnx/Cast/25", "f4e2m1"),
    ],
)
def test_a_zero_of_a_narrow_float_type_keeps_its_sign(key, dtype):
    """ONNX, technical notes, float stored in 8 and 4 bits: what rounds to zero keeps its sign, where there is a -0."""
    from harness.core.dtypes import BY_NAME, F32
    from harness.core.instance import Arg, Instance
    from harness.declare import registry
    from harness.generate.recipes import arrays_of

    op, version = key.split("/")[1:]
    x = Arg(F32, (2,), values=[-1e-6, 1e-6])
    args = {"input": x}
    if op != "Cast":
        args = {"x": x, "y_scale": Arg(F32, (), values=[1.0]), "y_zero_point": Arg(BY_NAME[dtype], (), values=[0.0])}
    attrs = {"to": BY_NAME[dtype]} if op == "Cast" else {}
    inst = Instance("onnx", op, int(version), 25, attrs, args)
    want = registry.dialect("onnx").evaluate(inst, arrays_of(inst))
    assert np.signbit(want[0].value.astype(np.float32)).tolist() == [True, False]
    for values, right in (([-0.0, 0.0], True), ([0.0, 0.0], False), ([-0.0, -0.0], False)):
        got = Outcome(Status.VALUE, [np.array(values, np.float32).astype(BY_NAME[dtype].np)])
        assert (judge(want, got).verdict is Verdict.MISMATCH) != right, values
