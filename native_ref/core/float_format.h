// The small float formats, described by numbers, and their encode/decode from and to f64.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "native_ref/core/dtype.h"

namespace opconform {

// special: what the format has besides finite numbers.
enum class Special : std::uint8_t {
  ieee,       // inf at the all-ones exponent, NaN above it
  fn,         // no inf, NaN = all ones (e4m3fn)
  fnuz,       // no inf, no -0, NaN = the pattern of -0
  none,       // neither (f4e2m1, f6e2m3, f6e3m2)
};

template <int ExpBits, int FracBits, int Bias, Special S>
struct Format {
  static constexpr int exp_bits = ExpBits, frac = FracBits, bias = Bias;
  static constexpr Special special = S;
  static constexpr int bits = 1 + ExpBits + FracBits;
  static constexpr std::uint32_t sign_bit = 1u << (ExpBits + FracBits);
  static constexpr std::uint32_t all = sign_bit - 1;  // every bit but the sign
  static constexpr std::uint32_t inf_bits = ((1u << ExpBits) - 1) << FracBits;
  static constexpr std::uint32_t max_bits = S == Special::ieee ? inf_bits - 1 : S == Special::fn ? all - 1 : all;
  static constexpr std::uint32_t nan_bits = S == Special::ieee ? inf_bits | (1u << (FracBits - 1))
                                            : S == Special::fn ? all
                                            : S == Special::fnuz ? sign_bit
                                                                 : sign_bit;  // none: NaN becomes -0, see encode
  static constexpr int min_exp = 1 - Bias;  // of the smallest normal
};

using F16 = Format<5, 10, 15, Special::ieee>;
using BF16 = Format<8, 7, 127, Special::ieee>;
using E4M3FN = Format<4, 3, 7, Special::fn>;
using E4M3FNUZ = Format<4, 3, 8, Special::fnuz>;
using E5M2 = Format<5, 2, 15, Special::ieee>;
using E5M2FNUZ = Format<5, 2, 16, Special::fnuz>;
using E2M1 = Format<2, 1, 1, Special::none>;
using E2M3 = Format<2, 3, 1, Special::none>;
using E3M2 = Format<3, 2, 3, Special::none>;

// What an element of a format is stored in.
template <class F>
using StoredAs = std::conditional_t<(F::bits > 8), std::uint16_t, std::uint8_t>;

enum class Rounding : std::int32_t { even = 0, zero = 1, up = 2, down = 3, away = 4, odd = 5 };  // away: ties away from 0

// 2^e for a normal exponent.
inline double pow2(int e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); }

// Rounds |v| to a multiple of the format's spacing at |v|; exact in f64, may reach the next power of two or beyond max.
// quantum = 2^(max(exponent(v), min_exp) - frac); adding 2^52 quanta leaves an f64 whose unit is that quantum.
template <class F>
inline double round_even(double magnitude) {
  constexpr double least = std::bit_cast<double>(static_cast<std::uint64_t>(F::min_exp + 1023) << 52);
  constexpr std::uint64_t lift = static_cast<std::uint64_t>(52 - F::frac) << 52;
  // compared as f64, which every instruction set does in vectors
  const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) & 0x7ff0000000000000ull);
  const double magic = std::bit_cast<double>(std::bit_cast<std::uint64_t>(power > least ? power : least) + lift);
  return (magnitude + magic) - magic;
}

// Any rounding, scalar: the definition that round_even is the fast case of.
template <class F>
inline double round_any(double magnitude, bool negative, Rounding mode) {
  if (!(magnitude < std::numeric_limits<double>::infinity())) return magnitude;
  int e = magnitude > 0 ? std::ilogb(magnitude) : F::min_exp;
  if (e < F::min_exp) e = F::min_exp;
  const double quantum = std::ldexp(1.0, e - F::frac);
  const double units = std::floor(magnitude / quantum);  // exact: a power of two
  const double rest = magnitude / quantum - units;
  const bool odd = std::fmod(units, 2.0) != 0;
  bool up = false;
  switch (mode) {
    case Rounding::even: up = rest > 0.5 || (rest == 0.5 && odd); break;
    case Rounding::zero: up = false; break;
    case Rounding::up: up = !negative && rest > 0; break;
    case Rounding::down: up = negative && rest > 0; break;
    case Rounding::away: up = rest >= 0.5; break;
    case Rounding::odd: up = rest > 0 && !odd; break;
  }
  return (units + (up ? 1.0 : 0.0)) * quantum;
}

// Largest finite value.
template <class F>
constexpr double max_finite() {
  return std::bit_cast<double>(
      ((static_cast<std::uint64_t>(F::max_bits >> F::frac) + static_cast<std::uint64_t>(1023 - F::bias)) << 52) |
      (static_cast<std::uint64_t>(F::max_bits & ((1u << F::frac) - 1)) << (52 - F::frac)));
}

// saturate: overflow and inf give the largest finite value (ONNX Cast, saturate = 1); otherwise inf where the format has
// it, else NaN.  f4 and f6 have neither: they always saturate, and NaN becomes -0, as in ml_dtypes (no clause says
// otherwise).
template <class F>
inline std::uint32_t encode_rounded(double magnitude, std::uint32_t sign, bool is_nan, bool saturate) {
  // magnitude: already a multiple of the spacing
  constexpr std::uint64_t rebias = static_cast<std::uint64_t>(1023 - F::bias) << 52;
  const double smallest = std::bit_cast<double>(static_cast<std::uint64_t>(F::min_exp + 1023) << 52);
  const std::uint64_t b = std::bit_cast<std::uint64_t>(magnitude);
  const std::uint64_t normal = (b - rebias) >> (52 - F::frac);
  // below the smallest normal: adding it puts the fraction in place, its own exponent bit (1) is taken off again
  const std::uint64_t sub =
      ((std::bit_cast<std::uint64_t>(magnitude + smallest) - rebias) >> (52 - F::frac)) - (1ull << F::frac);
  std::uint64_t out = magnitude < smallest ? sub : normal;
  const bool over = b > std::bit_cast<std::uint64_t>(max_finite<F>());
  const std::uint64_t big = saturate || F::special == Special::none ? F::max_bits
                            : F::special == Special::ieee             ? F::inf_bits
                                                                      : F::nan_bits;
  out = over ? big : out;
  std::uint64_t s = sign;
  if constexpr (F::special == Special::fnuz) s = (out == 0 || out == F::nan_bits) ? 0 : s;
  out |= s;
  constexpr bool signed_nan = F::special == Special::ieee || F::special == Special::fn;
  return static_cast<std::uint32_t>(is_nan ? F::nan_bits | (signed_nan ? sign : 0) : out);
}

template <class F>
inline std::uint32_t encode(double v, bool saturate = false) {
  const std::uint64_t b = std::bit_cast<std::uint64_t>(v);
  const std::uint32_t sign = static_cast<std::uint32_t>(b >> 63) * F::sign_bit;
  const double m = std::bit_cast<double>(b & 0x7fffffffffffffffull);
  return encode_rounded<F>(round_even<F>(m), sign, v != v, saturate);
}

template <class F>
inline double decode(std::uint32_t raw) {
  const std::uint32_t m = raw & F::all;
  const std::uint64_t sign = static_cast<std::uint64_t>((raw & F::sign_bit) != 0) << 63;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if constexpr (F::special == Special::fnuz) {
    if (raw == F::nan_bits) return nan;
  } else if constexpr (F::special == Special::fn) {
    if (m == F::all) return nan;
  }
  // as an f64 with a far too small exponent, then scaled: subnormals come out right by themselves
  double v = std::bit_cast<double>(static_cast<std::uint64_t>(m) << (52 - F::frac));
  v *= std::bit_cast<double>(static_cast<std::uint64_t>(2046 - F::bias) << 52);  // 2^(1023 - bias)
  if constexpr (F::special == Special::ieee) {
    if (m > F::inf_bits) v = nan;
    if (m == F::inf_bits) v = std::numeric_limits<double>::infinity();
  }
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) | sign);
}

// f8e8m0: 2^(b - 127), 255 is NaN; no sign, no zero.  up / zero / away: the next, the lower, the nearest power (ties up);
// even counts as away.  saturate: out of range gives the ends, 0 included; else NaN.  Negative: NaN.
// Source: ONNX Cast-24, table for FLOAT8E8M0.
inline std::uint32_t encode_e8m0(double v, Rounding mode = Rounding::even, bool saturate = true) {
  constexpr double least = 0x1p-127;
  if (!(v >= 0)) return 255;
  if (v < least) return saturate ? 0u : 255u;
  if (std::isinf(v)) return saturate ? 254u : 255u;
  int e = 0;
  const double f = std::frexp(v, &e);  // v = f * 2^e, f in [0.5, 1)
  const bool up = mode == Rounding::up                                  ? f > 0.5
                  : mode == Rounding::zero || mode == Rounding::down ? false
                                                                        : f >= 0.75;
  const int code = e - 1 + (up ? 1 : 0) + 127;
  return code > 254 ? (saturate ? 254u : 255u) : static_cast<std::uint32_t>(code);
}

inline double decode_e8m0(std::uint32_t b) {
  return b == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(b) - 127);
}

}  // namespace opconform
