"""Writes poly.h: the polynomials of math.h, fitted with mpmath (Chebyshev interpolation, 60 digits).

    python native_ref/kernels/elementwise/coefficients.py > native_ref/kernels/elementwise/poly.h

Each line also states the largest fitting error, which is far below the 2**-53 that evaluation in f64 adds anyway.
"""

from __future__ import annotations

from typing import Any

import mpmath

mp = mpmath.mp
mp.dps = 60
SMALL = mp.mpf("1e-12")


def show(name: str, what: str, f: Any, lo: Any, hi: Any, terms: int) -> None:
    coefficients, error = mpmath.chebyfit(f, [mp.mpf(lo), mp.mpf(hi)], terms, error=True)
    values = [float.hex(float(c)) for c in reversed(coefficients)]
    print(f"// {what}, on [{mpmath.nstr(lo, 6)}, {mpmath.nstr(hi, 6)}], error {mpmath.nstr(error, 2)}")
    print(f"inline constexpr double {name}[] = {{")
    for i in range(0, len(values), 4):
        print("    " + ", ".join(values[i : i + 4]) + ",")
    print("};")


def pieces(name: str, what: str, f: Any, step: Any, terms: int) -> None:
    """f around 0, step ... 15 step, the coefficients of one power of all pieces side by side."""
    step, rows, lost, worst = mp.mpf(step), [], [], mp.mpf(0)
    for k in range(16):
        row, error = mpmath.chebyfit(lambda d, at=k * step: f(at + d), [-step / 2, step / 2], terms, error=True)
        worst = max(worst, error / f((k + mp.mpf(1) / 2) * step))
        rows.append([float.hex(float(c)) for c in reversed(row)])
        lost.append(float.hex(float(row[-1] - float(row[-1]))))
    print(f"// {what} in x - k step, error {mpmath.nstr(worst, 2)} of the value")
    print(f"inline constexpr double {name}Step = {float.hex(float(step))};")
    print(f"alignas(64) inline constexpr double {name}Pieces[{terms}][16] = {{")
    for power in zip(*rows):
        print("    {" + ", ".join(power[:4]) + ",")
        for i in range(4, 16, 4):
            print("     " + ", ".join(power[i : i + 4]) + ("," if i < 12 else "},"))
    print("};")
    print(f"inline constexpr double {name}Lost[16] = {{  // by the first row in rounding")
    for i in range(0, 16, 4):
        print("    " + ", ".join(lost[i : i + 4]) + ",")
    print("};")


def series(f: Any, taylor: Any) -> Any:
    """f away from 0, a few terms of its series next to it, where f as written would divide 0 by 0."""
    return lambda z: taylor(z) if abs(z) < SMALL else f(z)


def erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


print("// Written by coefficients.py.\n#pragma once\n\nnamespace opconform::math {\n")
half = mp.log(2) / 2 * mp.mpf("1.001")
expm1 = series(lambda r: (mp.expm1(r) - r) / r**2, lambda r: 0.5 + r / 6)
show("kExpm1", "(e^r - 1 - r) / r^2", expm1, -half, half, 10)
zmax = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2
show(
    "kLog",
    "(log((1+s)/(1-s)) - 2s) / s as a polynomial in z = s^2, without its factor z",
    series(
        lambda z: (2 * mp.atanh(mp.sqrt(z)) - 2 * mp.sqrt(z)) / (mp.sqrt(z) * z), lambda z: mp.mpf(2) / 3 + 2 * z / 5
    ),
    mp.mpf(0),
    zmax * mp.mpf("1.001"),
    8,
)
show(
    "kLogRest",
    "the same less 2/3, without its next factor z",
    series(
        lambda z: ((2 * mp.atanh(mp.sqrt(z)) - 2 * mp.sqrt(z)) / (mp.sqrt(z) * z) - mp.mpf(2) / 3) / z,
        lambda z: mp.mpf(2) / 5 + 2 * z / 7,
    ),
    mp.mpf(0),
    zmax * mp.mpf("1.001"),
    8,
)
show(
    "kExpRest",
    "(e^r - 1 - r - r^2/2) / r^3",
    series(lambda r: (mp.expm1(r) - r - r**2 / 2) / r**3, lambda r: 1 / mp.mpf(6) + r / 24),
    -half,
    half,
    10,
)
quarter = (mp.pi / 4) ** 2 * mp.mpf("1.001")
show(
    "kSin",
    "(sin r - r) / r^3 in r^2",
    series(lambda z: (mp.sin(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3, lambda z: -mp.mpf(1) / 6 + z / 120),
    mp.mpf(0),
    quarter,
    7,
)
show(
    "kCos",
    "(cos r - 1 + r^2/2) / r^4 in r^2",
    series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: mp.mpf(1) / 24 - z / 720),
    mp.mpf(0),
    quarter,
    7,
)
show(
    "kErf",
    "erf(x) / x in x^2",
    series(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z), lambda z: 2 / mp.sqrt(mp.pi) * (1 - z / 3)),
    mp.mpf(0),
    mp.mpf(1),
    12,
)
eighth = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.001")
show(
    "kAtan",
    "(atan t - t) / t^3 in t^2",
    series(lambda z: (mp.atan(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3, lambda z: -mp.mpf(1) / 3 + z / 5),
    mp.mpf(0),
    eighth,
    11,
)


def scaled(t: Any) -> Any:
    x = 4 * (1 + t) / (1 - t)
    return erfcx(x) * (1 + 2 * x)


lowest = mp.mpf(-1)  # x = 0
highest = (mp.mpf(28) - 4) / (mp.mpf(28) + 4)
show("kErfcx", "e^(x^2) erfc(x) (1 + 2x) in t = (x - 4) / (x + 4)", scaled, lowest, highest, 22)


def middle(t: Any) -> Any:
    return erfcx(2.5 * (1 + t) / (1 - t))


# for erf alone: its tail is only wanted absolutely, so a shorter range and fewer terms do
lowest, highest = (mp.mpf(1) - 2.5) / (mp.mpf(1) + 2.5), (mp.mpf(6) - 2.5) / (mp.mpf(6) + 2.5)
show("kErfTail", "e^(x^2) erfc(x) in t = (x - 2.5) / (x + 2.5)", middle, lowest, highest, 15)

# for instruction sets that can look coefficients up in registers
erf_share = series(lambda x: mp.erf(x) / x, lambda x: 2 / mp.sqrt(mp.pi) * (1 - x * x / 3))
pieces("kErf", "erf(x) / x", erf_share, mp.mpf(13) / 32, 13)
pieces("kNormal", "erfc(x / sqrt 2) / 2", lambda x: mp.erfc(x / mp.sqrt(2)) / 2, mp.mpf(3) / 8, 15)
GELU_A = 2 * mp.sqrt(2 / mp.pi)
GELU_B = mp.mpf(0.044715) * GELU_A
gelu_tanh = "1 / (1 + e^(a x + b x^3)), a and b of GeluTanh"
pieces("kGeluTanh", gelu_tanh, lambda x: 1 / (1 + mp.exp(x * (GELU_A + GELU_B * x * x))), mp.mpf(3) / 8, 16)
print("\n}  // namespace opconform::math")
