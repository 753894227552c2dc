// Elementary functions for the functors.
//
// double: for inputs of up to 32 bits.  No branch, no table, no call, so that the compiler turns the loop over a block into
// vector code; within about 1.5 ulp of f64, which one rounding to f32 or less turns into the right result but for one input
// in some 2^28.  Arguments beyond what a 32-bit input can bring (results below 2^-1022 or above 2^1022) go to 0 or inf.
//
// long double: for f64 inputs, the C library, half an ulp and a little where long double is wider than double.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "native_ref/kernels/elementwise/poly.h"

namespace opconform::math {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kMagic = 0x1.8p52;  // x + kMagic holds round(x) in its low bits

// a * b + c, in one rounding where the processor has it (a call to fma() would undo the vectorisation)
inline double mad(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}
inline double less(double c, double a, double b) { return mad(-a, b, c); }  // c - a * b

// Written out rather than a loop: gcc unrolls it too late to vectorise the loop around it.
// T here and below: double, or the packs of pack.h.
template <std::size_t N, class T, std::size_t... I>
inline T horner_steps(const double (&c)[N], T x, std::index_sequence<I...>) {
  T y = c[N - 1];
  ((y = mad(y, x, c[N - 2 - I])), ...);
  return y;
}
// c[From] + c[From + 2] z + c[From + 4] z^2 ...
template <std::size_t From, std::size_t N, class T, std::size_t... I>
inline T every_other(const double (&c)[N], T z, std::index_sequence<I...>) {
  constexpr std::size_t last = From + 2 * sizeof...(I);
  T y = c[last];
  ((y = mad(y, z, c[last - 2 - 2 * I])), ...);
  return y;
}
// A long one in two chains, which a processor runs side by side.
template <std::size_t N, class T>
inline T horner(const double (&c)[N], T x) {
  if constexpr (N < 12) {
    return horner_steps(c, x, std::make_index_sequence<N - 1>{});
  } else {
    const T z = x * x;
    const T even = every_other<0>(c, z, std::make_index_sequence<(N - 1) / 2>{});
    return mad(every_other<1>(c, z, std::make_index_sequence<N / 2 - 1>{}), x, even);
  }
}

inline std::int64_t bits(double v) { return std::bit_cast<std::int64_t>(v); }
inline double from_bits(std::int64_t v) { return std::bit_cast<double>(v); }
// Unsigned where a lane that is not used may overflow (-0, NaN).
inline std::uint64_t ubits(double v) { return std::bit_cast<std::uint64_t>(v); }
inline double from_bits(std::uint64_t v) { return std::bit_cast<double>(v); }

// a number as it is, a NaN as a conversion to another type leaves it
inline float quiet(float v) {
  const auto at = std::bit_cast<std::uint32_t>(v);
  return std::bit_cast<float>(v != v ? at | 0x400000 : at);
}

// a where it is the smaller (larger) of the two, else x: one instruction, and NaN stays
inline double at_most(double a, double x) { return a < x ? a : x; }
inline double at_least(double a, double x) { return a > x ? a : x; }
inline double magnitude(double x) { return std::fabs(x); }
inline double with_sign(double x, double of) { return std::copysign(x, of); }
inline bool above(double a, double b) { return a > b; }
inline double choose(bool which, double a, double b) { return which ? a : b; }
inline double exponent(double t) { return from_bits(ubits(t) << 52); }  // 2^k from what holds k + 1023 in its low bits

// x = k ln2 + r.  Returns e^r - 1 and sets scale = 2^k.  x >= -709: 2^-1023 is 0; k stops at 1024, where 2^k is inf (the ends
// are cut off in two places, since compilers make four comparisons of a choice within a choice).
inline constexpr double kBiased = kMagic + 1023.0;  // holds the exponent field of 2^k in its low bits
template <class T>
inline T exp_parts(T x, T& scale) {
  constexpr double log2e = 0x1.71547652b82fep+0;
  constexpr double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b3ap-40;  // ln2; high has 20 trailing zeros: k * high is exact
  const T t = mad(x, log2e, kBiased);
  const T k = t - kBiased;
  const T r = less(less(x, k, high), k, low);
  scale = exponent(t);
  return mad(r * r, horner(kExpm1, r), r);
}

// Below -709 the scale is 0, above 709.5 it is inf, so that both ends need no further choice.
template <class T>
inline T exponential(T x) {
  T scale;
  const T p = exp_parts(at_most(709.8, at_least(-709.0, x)), scale);
  return (1.0 + p) * scale;
}
inline double exp(double x) { return exponential(x); }

inline double exp2(double x) {
  const double c = at_least(-1023.0, x);
  const double t = at_most(kBiased + 1024.0, c + kBiased);
  const double r = c - (t - kBiased);
  constexpr double ln2 = 0x1.62e42fefa39efp-1, rest = 0x1.abc9e3b39803fp-56;
  const double q = r * ln2, s = mad(r, rest, q);
  const double scale = from_bits(ubits(t) << 52);
  return (1.0 + mad(s * s, horner(kExpm1, s), s)) * scale;
}

inline double expm1(double x) {
  double scale;
  const double p = exp_parts(at_least(-60.0, x), scale);  // -1 to the last place from -60 on
  const double y = mad(scale, p, scale - 1.0);
  return std::copysign(x > 709.0 ? kInfinity : y, x);
}

// log(u) + lost / u for 0 < u < 2^1000, with one division for both.
inline double log_sum(double u, double lost) {
  // u = 2^k m, sqrt(1/2) <= m < sqrt(2)
  constexpr std::uint64_t root = 0x3fe6a09e667f3bcd;
  constexpr double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b3ap-40;
  const std::uint64_t shifted = ubits(u) - root + (std::uint64_t{1024} << 52);  // exponent 1024 + k, never negative
  const std::uint64_t field = shifted >> 52;
  const double k = from_bits(field + ubits(kMagic)) - (kMagic + 1024.0);
  const double m = from_bits(ubits(u) - ((field - 1024) << 52));
  const double f = m - 1.0;
  const double two_f = 2.0 + f, inverse = 1.0 / (two_f * u);
  const double s = f * (u * inverse);
  const double z = s * s;
  const double half = 0.5 * f * f;
  const double r = z * horner(kLog, z);  // log(1+f) = f - half + s (half + r)
  const double c = mad(k, low, lost * (two_f * inverse));
  return k * high - ((half - (s * (half + r) + c)) - f);
}

inline double log(double x) {
  constexpr std::uint64_t root = 0x3fe6a09e667f3bcd;
  constexpr double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b3ap-40;
  const std::uint64_t shifted = ubits(x) - root + (std::uint64_t{1024} << 52);
  const std::uint64_t field = shifted >> 52;
  const double k = from_bits(field + ubits(kMagic)) - (kMagic + 1024.0);
  const double f = from_bits(ubits(x) - ((field - 1024) << 52)) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double half = 0.5 * f * f;
  const double r = z * horner(kLog, z);
  const double y = k * high - ((half - (s * (half + r) + k * low)) - f);
  return x > 0 ? (x == kInfinity ? x : y) : x == 0 ? -kInfinity : kNaN;
}

inline double log1p(double x) {
  const double u = 1.0 + x;
  const double lost = x < 1.0 ? x - (u - 1.0) : 1.0 - (u - x);  // what u lost of the sum
  const bool fine = u > 0 && u < 0x1p1000;
  const double y = log_sum(fine ? u : 1.0, fine ? lost : 0.0);
  // added rather than chosen, which would tempt the compiler to branch around y; 32-bit inputs do not get near 2^1000
  const double beyond = u > 0 ? (u < 0x1p1000 ? 0.0 : kInfinity) : u == 0 ? -kInfinity : kNaN;
  return x == 0 ? x : y + beyond;
}
// log(1 + e) for 0 <= e <= 1
inline double log1p_unit(double e) {
  const double u = 1.0 + e;
  return log_sum(u, e - (u - 1.0));
}
inline long double log1p_unit(long double e) { return std::log1p(e); }

// Sine and cosine after taking off the nearest multiple of pi/2, in three parts whose products with k are exact.  Good to
// |x| < 2^20 ; beyond that hard() sends the element to the C library.
inline bool far(double x) { return !(std::fabs(x) < 0x1p20); }

inline double quadrants(double x, std::uint64_t& quadrant) {
  constexpr double p1 = 0x1.921fb544p+0, p2 = 0x1.0b4611a6p-34, p3 = 0x1.3198a2e037073p-69;
  const double t = x * 0x1.45f306dc9c883p-1 + kMagic;
  const double k = t - kMagic;
  quadrant = ubits(t) - ubits(kMagic);
  return ((x - k * p1) - k * p2) - k * p3;
}
inline double sin_part(double r) { return mad(r * (r * r), horner(kSin, r * r), r); }
inline double cos_part(double r) {
  const double z = r * r;
  // 1 - z/2 loses up to half an ulp of 1, which comes back in the sum
  const double h = 0.5 * z, w = 1.0 - h;
  return w + (((1.0 - w) - h) + z * z * horner(kCos, z));
}
inline double sin(double x) {
  std::uint64_t q;
  const double r = quadrants(x, q);
  const double y = (q & 1) ? cos_part(r) : sin_part(r);
  const double signed_y = (q & 2) ? -y : y;
  return x == 0 ? x : signed_y;
}
inline double cos(double x) {
  std::uint64_t q;
  const double r = quadrants(x, q);
  const double y = (q & 1) ? sin_part(r) : cos_part(r);
  return ((q + 1) & 2) ? -y : y;
}

inline double tan(double x) {
  std::uint64_t q;
  const double r = quadrants(x, q);
  const double s = sin_part(r), c = cos_part(r);
  const double y = ((q & 1) ? -c : s) / ((q & 1) ? s : c);
  return x == 0 ? x : y;
}

// One of three reductions to |t| <= tan(pi/8): a, (a-1)/(a+1) from pi/4, -1/a from pi/2.
template <class T>
inline T arctangent(T x) {
  const T a = magnitude(x);
  const auto far_out = above(a, 0x1.3504f333f9de6p+1), middle = above(a, 0x1.a827999fcef32p-2);
  const T num = choose(far_out, -1.0, choose(middle, a - 1.0, a));
  const T den = choose(far_out, a, choose(middle, a + 1.0, 1.0));
  const T base = choose(far_out, 0x1.921fb54442d18p+0, choose(middle, 0x1.921fb54442d18p-1, 0.0));
  const T low = choose(far_out, 0x1.1a62633145c07p-54, choose(middle, 0x1.1a62633145c07p-55, 0.0));
  const T t = num / den, z = t * t;
  return with_sign(base + (t + (t * z * horner(kAtan, z) + low)), x);
}
inline double atan(double x) { return arctangent(x); }
inline double asin(double x) { return x == 0 ? x : atan(x / std::sqrt((1.0 - x) * (1.0 + x))); }
inline double acos(double x) { return 2.0 * atan(std::sqrt((1.0 - x) / (1.0 + x))); }
inline double asinh(double x) {
  const double a = std::fabs(x), q = a * a;
  const double y = log1p(a + q / (1.0 + std::sqrt(1.0 + q)));
  return x == 0 || x != x || a == kInfinity ? x : std::copysign(y, x);
}
inline double acosh(double x) {
  const double t = x - 1.0;
  const double y = log1p(t + std::sqrt(t * (2.0 + t)));
  return x >= 1.0 ? (x == kInfinity ? x : y) : kNaN;  // far below 1 the sum rounds to -1, whose logarithm is no NaN
}
inline double atanh(double x) {
  const double a = std::fabs(x);
  const double y = 0.5 * log1p(2.0 * a / (1.0 - a));
  return x == 0 || x != x ? x : std::copysign(y, x);
}

template <class T>
inline T tangent(T x) {  // hyperbolic: t / (t + 2),  t = e^(2|x|) - 1
  T scale;
  const T p = exp_parts(2.0 * at_most(22.0, magnitude(x)), scale);
  const T t = mad(scale, p, scale - 1.0);
  return with_sign(t / (t + 2.0), x);  // rounds to 1 at 22
}
inline double tanh(double x) { return tangent(x); }
inline double sinh(double x) {  // (t + t / (t + 1)) / 2,  t = e^|x| - 1
  const double t = expm1(std::fabs(x));
  const double y = 0.5 * (t + (t < kInfinity ? t / (t + 1.0) : t));
  return x != x ? x : std::copysign(y, x);
}
inline double cosh(double x) {  // 1 + t^2 / (2 (t + 1)): no loss next to 0
  const double t = expm1(std::fabs(x));
  return t < 0x1p500 ? 1.0 + t * t / (2.0 * (t + 1.0)) : 0.5 * t;
}

// erfc for x >= 0: e^-x^2 times a polynomial in (x-4)/(x+4) over 1 + 2x, with one division for both.  The part of the
// square that f64 loses goes into the exponential; `low` is a part of the argument below x's last place.
inline double erfc_tail(double x, double low) {
  const double c = at_most(26.5, x);
  const double a = c + 4.0, b = mad(2.0, c, 1.0), inverse = 1.0 / (a * b);
  const double p = horner(kErfcx, (c - 4.0) * (b * inverse)) * (a * inverse);
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  const double square = c * c, rest = mad(c, c, -square) + 2.0 * c * low;
  double scale;
  const double q = exp_parts(-square, scale);
  const double e = mad(scale, q, scale);
  const double y = mad(-e, rest, e) * p;
#else
  const double head = from_bits(bits(c) & ~std::int64_t{0x7ffffff});  // 26 bits: its square is exact
  const double rest = (c - head) * (c + head) + 2.0 * c * low;
  double scale;
  const double q = exp_parts(-head * head, scale);
  const double e = mad(scale, q, scale);
  const double y = (e - e * rest * (1.0 - rest * (0.5 - rest * (1.0 / 6)))) * p;
#endif
  return x > 26.5 ? 0.0 : y;
}
inline double erfc(double x, double low = 0.0) {
  const double tail = erfc_tail(std::fabs(x), x < 0 ? -low : low);
  return x < 0 ? 2.0 - tail : tail;
}
inline double erf(double x) {
  const double a = std::fabs(x);
  const double near = x * horner(kErf, x * x);
  const double c = at_most(6.0, a);  // beyond 6 erf is 1 to the last place
  double scale;
  const double q = exp_parts(-c * c, scale);
  const double tail = mad(-mad(scale, q, scale), horner(kErfTail, (c - 2.5) / (c + 2.5)), 1.0);
  return a < 1.0 ? near : std::copysign(tail, x);
}

inline double log2(double x) { return std::log2(x); }
inline double log10(double x) { return std::log10(x); }

inline long double exp(long double x) { return std::exp(x); }
inline long double exp2(long double x) { return std::exp2(x); }
inline long double expm1(long double x) { return std::expm1(x); }
inline long double log(long double x) { return std::log(x); }
inline long double log2(long double x) { return std::log2(x); }
inline long double log10(long double x) { return std::log10(x); }
inline long double log1p(long double x) { return std::log1p(x); }
inline long double sin(long double x) { return std::sin(x); }
inline long double cos(long double x) { return std::cos(x); }
inline long double tan(long double x) { return std::tan(x); }
inline long double asin(long double x) { return std::asin(x); }
inline long double acos(long double x) { return std::acos(x); }
inline long double atan(long double x) { return std::atan(x); }
inline long double sinh(long double x) { return std::sinh(x); }
inline long double cosh(long double x) { return std::cosh(x); }
inline long double tanh(long double x) { return std::tanh(x); }
inline long double asinh(long double x) { return std::asinh(x); }
inline long double acosh(long double x) { return std::acosh(x); }
inline long double atanh(long double x) { return std::atanh(x); }
inline long double erf(long double x) { return std::erf(x); }
inline long double erfc(long double x, long double = 0) { return std::erfc(x); }

}  // namespace opconform::math
