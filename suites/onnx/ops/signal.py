"""Signal processing."""

from __future__ import annotations

from typing import Any

from harness.core.dtypes import DType
from harness.declare import Call, Checks, Draw, Sampling, Spelling, T, beside
from suites.onnx import op
from suites.onnx.codecs import Default, Scalar
from suites.semantics import signal as s

op("DFT", s.dft, until=17, x="input", length=Scalar("dft_length", (0,)), axis=Default("axis", 1))
op(
    "DFT",
    s.dft,
    Checks(breaks={"one-element:axis": None}),
    since=20,
    x="input",
    length=Scalar("dft_length", (0,)),
    axis=Scalar("axis", (0,), -2),
)  # the reference alone refuses two axes
op("STFT", s.stft, x="signal", step=Scalar("frame_step", (0,)), length=Scalar("frame_length", (0,)))


def _type(call: Call, i: int = 0) -> DType:
    return call.attr("output_datatype")


def _whole(call: Call) -> str | None:
    if _type(call).kind not in "iu":
        return None
    tensors, params = call.version.decode(call)
    real = call.version.meaning.fn(**tensors, **params)
    return beside("a real result in an integer type: the op set names no rounding", real, 1e-5, _type(call))


def _cut(call: Call, results: list[Any]) -> list[Any]:
    t = _type(call)
    return [results[0].astype(t.np)] if t.kind in "iu" else results


def _draw_window(d: Draw) -> dict:
    out: dict[str, Any] = {"size": T((), values=[d.int(2, 16)])}
    if d.bool():
        out["periodic"] = d.int(0, 1)
    if d.bool():
        out["output_datatype"] = d.pick(d.version.schema.dtypes("T2"))
    return out


for _name, _kind in (("HannWindow", "hann"), ("HammingWindow", "hamming"), ("BlackmanWindow", "blackman")):
    op(
        _name,
        s.window,
        Spelling(size=Scalar("size"), fixed={"kind": _kind, "dtype": None}, out=_cut, out_dtype=_type),
        Sampling(_draw_window),
        Checks(ambiguous=_whole),
    )


def _draw_mel(d: Draw) -> dict:
    length = d.int(4, 32) * 2
    rate = d.pick((8192, 16000))
    low = d.int(0, 4) * 100
    out: dict[str, Any] = {
        "num_mel_bins": T((), values=[d.int(1, 8)]),
        "dft_length": T((), values=[length]),
        "sample_rate": T((), values=[rate]),
        "lower_edge_hertz": T((), values=[float(low)]),
        "upper_edge_hertz": T((), values=[float(d.int(10, rate // 200) * 100)]),
    }
    if d.types["T1"].bits < 32:
        out["sample_rate"] = T((), values=[100])
        out["dft_length"] = T((), values=[d.int(4, 20)])
        out["lower_edge_hertz"], out["upper_edge_hertz"] = T((), values=[0.0]), T((), values=[float(d.int(10, 40))])
    if d.chance(6):
        out |= _odd_mel(d)
    if d.bool():
        out["output_datatype"] = d.pick(d.version.schema.dtypes("T3"))
    return out


def _odd_mel(d: Draw) -> dict[str, Any]:
    """Few samples a second, of as long a signal or of more bands; no band of a very long one."""
    rate = d.pick((1, 2, 4, 16))
    length, bins = d.pick((rate, rate + 1, 4 * rate)), d.pick((rate, rate + 1, 1))
    if d.chance(4):
        length, bins = 2**31 - 1, 0
    numbers = {"num_mel_bins": bins, "dft_length": length, "sample_rate": rate}
    edges = {"lower_edge_hertz": 0.0, "upper_edge_hertz": rate / 2 if bins else rate / 4}
    return {n: T((), values=[v]) for n, v in (numbers | edges).items()}


op(
    "MelWeightMatrix",
    s.mel_matrix,
    Spelling(
        bins=Scalar("num_mel_bins"),
        length=Scalar("dft_length"),
        rate=Scalar("sample_rate"),
        low=Scalar("lower_edge_hertz"),
        high=Scalar("upper_edge_hertz"),
        fixed={"dtype": None},
        out=_cut,
        out_dtype=_type,
    ),
    Sampling(_draw_mel),
    Checks(ambiguous=_whole),
)
