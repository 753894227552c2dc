// Unary functors.  Each computes in f64 to within about an ulp of f64, so that one rounding to f32 or less is right but for
// the rare near tie; formulas are chosen against cancellation, not after a spec's spelling.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "native_ref/core/simd.h"
#include "native_ref/kernels/elementwise/math.h"
#include "native_ref/kernels/elementwise/pieces.h"
#include "native_ref/kernels/elementwise/run.h"

namespace opconform::unary {

using U = std::uint64_t;
using S = std::int64_t;
inline constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1, kSqrtHalfLow = -0x1.bdd3413b26456p-55;
inline constexpr double kGeluA = 0x1.9884533d43651p+0, kGeluALow = -0x1.cbc0d30ebfd15p-54;  // 2 sqrt(2/pi)
inline constexpr double kGeluB = 0x1.2444f2a4d8b4bp-4, kGeluBLow = -0x1.3023b0e5fbc6ep-58;  // 0.044715 times that
template <class T>
inline constexpr T kPi = T(3.14159265358979323846264338327950288L);

inline S wrap(U v) { return static_cast<S>(v); }

// Exact or correctly rounded by IEEE 754.
struct Abs {
  static constexpr const char* name = "abs";
  static double f(double x) { return std::fabs(x); }
  static S s(S x) { return x < 0 ? wrap(0 - static_cast<U>(x)) : x; }  // the lowest integer wraps onto itself
  static U u(U x) { return x; }
};
struct Neg {
  static constexpr const char* name = "neg";
  static double f(double x) { return -x; }
  static S s(S x) { return wrap(0 - static_cast<U>(x)); }
  static U u(U x) { return 0 - x; }
};
struct Sign {
  static constexpr const char* name = "sign";
  static double f(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }  // zeros and NaN stay what they are
  static S s(S x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
  static U u(U x) { return x > 0 ? 1 : 0; }
};
struct Ceil {
  static constexpr const char* name = "ceil";
  static double f(double x) { return std::ceil(x); }
  static S s(S x) { return x; }
  static U u(U x) { return x; }
};
struct Floor {
  static constexpr const char* name = "floor";
  static double f(double x) { return std::floor(x); }
  static S s(S x) { return x; }
  static U u(U x) { return x; }
};
struct Trunc {
  static constexpr const char* name = "trunc";
  static double f(double x) { return std::trunc(x); }
  static S s(S x) { return x; }
  static U u(U x) { return x; }
};
struct RoundHalfEven {
  static constexpr const char* name = "round_half_even";
  static double f(double x) { return std::nearbyint(x); }
  static S s(S x) { return x; }
  static U u(U x) { return x; }
};
struct RoundHalfAway {
  static constexpr const char* name = "round_half_away";
  static double f(double x) {
    const double t = std::trunc(x);
    return std::fabs(x - t) >= 0.5 ? t + std::copysign(1.0, x) : std::copysign(t, x);
  }
  static S s(S x) { return x; }
  static U u(U x) { return x; }
};
struct Sqrt {
  static constexpr const char* name = "sqrt";
  static double f(double x) { return std::sqrt(x); }
};
struct Reciprocal {
  static constexpr const char* name = "reciprocal";
  static double f(double x) { return 1.0 / x; }
};
struct Square {
  static constexpr const char* name = "square";
  static double f(double x) { return x * x; }
  static S s(S x) { return wrap(static_cast<U>(x) * static_cast<U>(x)); }
  static U u(U x) { return x * x; }
};
struct Rsqrt {
  static constexpr const char* name = "rsqrt";
  // 1/sqrt is off by up to an ulp: one correction step, r' = r + r * (1 - x r^2) / 2 with the residual by fma
  static double f(double x) {
    const double r = 1.0 / std::sqrt(x);
    const double h = r * r, lo = std::fma(r, r, -h);
    const double e = std::fma(-x, h, 1.0) - x * lo;
    const double better = std::fma(0.5 * r, e, r);
    return x > 0x1p-900 && x < 0x1p900 ? better : r;
  }
};

// Elementary functions.
struct Exp {
  static constexpr const char* name = "exp";
  static constexpr bool packs = true;
  static float exact(float x, const float*) { return static_cast<float>(f<double>(x)); }
  template <class T>
  static T f(T x) { return math::exp(x); }
};
struct Exp2 {
  static constexpr const char* name = "exp2";
  template <class T>
  static T f(T x) { return math::exp2(x); }
};
struct Expm1 {
  static constexpr const char* name = "expm1";
  template <class T>
  static T f(T x) { return math::expm1(x); }
};
struct Log {
  static constexpr const char* name = "log";
  template <class T>
  static T f(T x) { return math::log(x); }
};
struct Log2 {
  static constexpr const char* name = "log2";
  template <class T>
  static T f(T x) { return math::log2(x); }
};
struct Log10 {
  static constexpr const char* name = "log10";
  template <class T>
  static T f(T x) { return math::log10(x); }
};
struct Log1p {
  static constexpr const char* name = "log1p";
  template <class T>
  static T f(T x) { return math::log1p(x); }
};
struct Sin {
  static constexpr const char* name = "sin";
  template <class T>
  static T f(T x) { return math::sin(x); }
  static bool hard(double x) { return math::far(x); }
  static double slow(double x) { return std::sin(x); }
};
struct Cos {
  static constexpr const char* name = "cos";
  template <class T>
  static T f(T x) { return math::cos(x); }
  static bool hard(double x) { return math::far(x); }
  static double slow(double x) { return std::cos(x); }
};
struct Tan {
  static constexpr const char* name = "tan";
  template <class T>
  static T f(T x) { return math::tan(x); }
  static bool hard(double x) { return math::far(x); }
  static double slow(double x) { return std::tan(x); }
};
struct Asin {
  static constexpr const char* name = "asin";
  template <class T>
  static T f(T x) { return math::asin(x); }
};
struct Acos {
  static constexpr const char* name = "acos";
  template <class T>
  static T f(T x) { return math::acos(x); }
};
struct Atan {
  static constexpr const char* name = "atan";
  static constexpr bool packs = true;
  static float exact(float x, const float*) { return static_cast<float>(f<double>(x)); }
  template <class T>
  static T f(T x) { return math::atan(x); }
};
struct Sinh {
  static constexpr const char* name = "sinh";
  template <class T>
  static T f(T x) { return math::sinh(x); }
};
struct Cosh {
  static constexpr const char* name = "cosh";
  template <class T>
  static T f(T x) { return math::cosh(x); }
};
struct Tanh {
  static constexpr const char* name = "tanh";
  static constexpr bool packs = true;
  static float exact(float x, const float*) { return static_cast<float>(f<double>(x)); }
  template <class T>
  static T f(T x) { return math::tanh(x); }
};
struct Asinh {
  static constexpr const char* name = "asinh";
  template <class T>
  static T f(T x) { return math::asinh(x); }
};
struct Acosh {
  static constexpr const char* name = "acosh";
  template <class T>
  static T f(T x) { return math::acosh(x); }
};
struct Atanh {
  static constexpr const char* name = "atanh";
  template <class T>
  static T f(T x) { return math::atanh(x); }
};
struct Erf {
  static constexpr const char* name = "erf";
  template <class T>
  static T f(T x) { return math::erf(x); }
#if defined(OPCONFORM_PIECES)
  static void rows(double* x, Index n, const double*) { pieces::erf(x, n); }
#endif
#if defined(OPCONFORM_PIECES_OF_F32)
  static bool rows(const float* x, float* y, Index n) {
    pieces::erf(x, y, n);
    return true;
  }
#endif
};
struct Erfc {
  static constexpr const char* name = "erfc";
  template <class T>
  static T f(T x) { return math::erfc(x); }
};

// Activations.  p[] holds the attributes in the order of the docstring in suites/semantics/elementwise.

template <class T>
inline constexpr T kInf = std::numeric_limits<T>::infinity();

// One step of the last place up (1) or down (-1), or none (0).  A result that f64 rounds onto a tie of the narrower type,
// while the exact one lies beside it, must not stay on the tie: the step keeps the later rounding right.
inline double nudge(double v, std::int64_t up) {
  const auto b = std::bit_cast<std::int64_t>(v);
  const std::int64_t negative = b < 0 ? -1 : 0;
  // unsigned: the lowest pattern (-0) may be stepped in a lane whose result is not used
  return std::bit_cast<double>(static_cast<std::uint64_t>(b) + static_cast<std::uint64_t>((up ^ negative) - negative));
}
// a + b rounded to odd: a later rounding to a narrower type gives what rounding the exact sum would.
inline double add_odd(double a, double b) {
  const double s = a + b, t = s - a;
  const double e = (a - (s - t)) + (b - t);  // what s lost; NaN beside infinities, where the test fails
  const auto at = std::bit_cast<std::int64_t>(s);
  // one step toward zero where e points there, then an odd last place
  const std::int64_t odd = (at + ((at ^ std::bit_cast<std::int64_t>(e)) >> 63)) | 1;
  return std::fabs(e) > 0 ? std::bit_cast<double>(odd) : s;
}
#if defined(__AVX512F__)
// x <- p[0] x + p[1] rounded to odd, then within low and high: the sum rounded down and up, of which one is odd.
inline void linear_rows(double* x, Index n, const double* p, double low, double high) {
  const __m512d scale = _mm512_set1_pd(p[0]), shift = _mm512_set1_pd(p[1]);
  const __m512d bottom = _mm512_set1_pd(low), top = _mm512_set1_pd(high);
  for (Index i = 0; i < n; i += 8) {
    const auto lanes = static_cast<__mmask8>(n - i < 8 ? (1 << (n - i)) - 1 : 255);
    const __m512d v = _mm512_mul_pd(scale, _mm512_maskz_loadu_pd(lanes, x + i));
    const __m512d down = _mm512_add_round_pd(v, shift, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512d up = _mm512_add_round_pd(v, shift, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    const __mmask8 odd = _mm512_test_epi64_mask(_mm512_castpd_si512(down), _mm512_set1_epi64(1));
    const __m512d sum = _mm512_mask_blend_pd(odd, up, down);
    // the operand order keeps NaN and -0
    _mm512_mask_storeu_pd(x + i, lanes, _mm512_min_pd(top, _mm512_max_pd(bottom, sum)));
  }
}
#endif
inline long double add_odd(long double a, long double b) { return a + b; }
// y, near 0 equal to x/2 + c x^2 with c of the sign of `up`: below 2^-52 the square is lost in y.
inline double half_up(double x, double y, std::int64_t up = 1) {
  const double stepped = nudge(0.5 * x, up);
  return std::fabs(x) < 0x1p-52 ? (x == 0 ? y : stepped) : y;
}
inline long double half_up(long double, long double y, std::int64_t = 1) { return y; }
// y, or where z is within `reach` of 0 its line and what is left beside that, rounded to odd: y loses the rest there, and
// a line c x is a tie of a narrow type for half of all x where c is a short number.
inline double beside_line(double z, double reach, double line, double rest, double y) {
  const double stepped = add_odd(line, rest);
  return std::fabs(z) < reach && line != 0 ? stepped : y;
}
inline long double beside_line(long double, double, long double, long double, long double y) { return y; }
#if defined(OPCONFORM_PIECES)
// A block by pieces, and by Op::f where they do not reach.  Which of the two an element takes depends on it alone.
template <class Op, const auto& Pieces>
void pieces_or_f(double* x, Index n) {
  if (pieces::within(x, n, Pieces.most)) return pieces::left_share<Pieces>(x, n);
  alignas(64) double near[kBlock];
  for (Index i = 0; i < n; ++i) near[i] = x[i];
  pieces::left_share<Pieces>(near, n);
  for (Index i = 0; i < n; ++i) {
    const double y = Op::f(x[i]);
    x[i] = std::fabs(x[i]) > Pieces.most ? y : near[i];
  }
}
#endif
#if defined(OPCONFORM_PIECES_OF_F32)
template <const auto& Pieces>
bool pieces_only(const float* x, float* y, Index n) {
  if (!pieces::within(x, n, Pieces.most)) return false;
  pieces::left_share<Pieces>(x, y, n);
  return true;
}
#endif
// x * s(x) where s vanishes faster than x grows: the limit at -inf is -0, where the product gives NaN
template <class T>
T left_tail(T x, T y) {
  return x == -kInf<T> ? T(-0.0) : y;
}

struct Relu {
  static constexpr const char* name = "relu";
  static double f(double x) { return x < 0 ? 0.0 : x; }
  static S s(S x) { return x < 0 ? 0 : x; }
  static U u(U x) { return x; }
};
struct Clamp {
  static constexpr const char* name = "clamp";
  static constexpr int params = 2;
  static double f(double x, const double* p) {  // min(max(x, lo), hi): hi wins when lo > hi, NaN stays
    const double low = x < p[0] ? p[0] : x;
    return low > p[1] ? p[1] : low;
  }
};
struct Sigmoid {
  static constexpr const char* name = "sigmoid";
  static constexpr float near = 0x1p-12f;  // within which 1/2 + x/4 - x^3/48 decides
  template <class T>
  static T plain(T x) {
    return 1 / (1 + math::exp(-x));
  }
  template <class T>
  static T f(T x) {
    return beside_line(x, near, T(0.5), add_odd(x / 4, -(x * x * x) / 48), plain(x));
  }
#if defined(OPCONFORM_PACKS)
  static bool rows(const float* x, float* y, Index n) {
    const Index done = math::packs(x, y, n, [](const math::Pack& v) { return plain(v); });
    for (Index i = 0; i < n; ++i)
      if (i >= done || std::fabs(x[i]) < near) y[i] = static_cast<float>(f<double>(x[i]));
    return true;
  }
#else
  static float exact(float x, const float*) { return static_cast<float>(f<double>(x)); }
#endif
};
// log(1 + e^x) without overflow, and without loss where e^x is small
template <class T>
T softplus(T x) {
  return (x > 0 ? x : T(0)) + math::log1p_unit(math::exp(-std::fabs(x)));
}
struct Softplus {
  static constexpr const char* name = "softplus";
  template <class T>
  static T f(T x) {
    return x != x ? x : softplus(x);
  }
};
struct LogSigmoid {
  static constexpr const char* name = "log_sigmoid";
  template <class T>
  static T f(T x) {
    return x != x ? x : -softplus(-x);
  }
};
struct Softsign {
  static constexpr const char* name = "softsign";
  template <class T>
  static T f(T x) {
    const T a = std::fabs(x);
    return a == kInf<T> ? std::copysign(T(1), x) : x / (1 + a);
  }
};
struct Elu {
  static constexpr const char* name = "elu";
  static constexpr int params = 1;
  template <class T>
  static T f(T x, const double* p) {
    const T line = p[0] * x;
    return x > 0 ? x : beside_line(x, 0x1p-27, line, line * x / 2, p[0] * math::expm1(x));
  }
};
struct Celu {  // max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
  static constexpr const char* name = "celu";
  static constexpr int params = 1;
  template <class T>
  static T f(T x, const double* p) {
    const T a = p[0] * math::expm1(x / p[0]);
    return (x < 0 ? T(0) : x) + (a > 0 ? T(0) : a);
  }
};
struct Selu {  // alpha, gamma
  static constexpr const char* name = "selu";
  static constexpr int params = 2;
  template <class T>
  static T f(T x, const double* p) {
    const T line = p[1] * p[0] * x;
    return x > 0 ? p[1] * x : beside_line(x, 0x1p-27, line, line * x / 2, p[1] * (p[0] * math::expm1(x)));
  }
};
struct LeakyRelu {
  static constexpr const char* name = "leaky_relu";
  static constexpr int params = 1;
  static double f(double x, const double* p) { return x < 0 ? p[0] * x : x; }
};
struct ThresholdedRelu {
  static constexpr const char* name = "thresholded_relu";
  static constexpr int params = 1;
  static double f(double x, const double* p) { return x > p[0] || x != x ? x : 0.0; }
};
struct ThresholdedReluInclusive {
  static constexpr const char* name = "thresholded_relu_inclusive";
  static constexpr int params = 1;
  static double f(double x, const double* p) { return x >= p[0] || x != x ? x : 0.0; }
};
struct Linear {
  static constexpr const char* name = "linear";
  static constexpr int params = 2;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  static float exact(float x, const float* p) { return __builtin_fmaf(p[0], x, p[1]); }
#endif
  template <class T>
  static T f(T x, const double* p) {
    return add_odd(p[0] * x, T(p[1]));
  }
#if defined(__AVX512F__)
  static void rows(double* x, Index n, const double* p) { linear_rows(x, n, p, -kInf<double>, kInf<double>); }
#endif
};
struct HardSigmoid {
  static constexpr const char* name = "hard_sigmoid";
  static constexpr int params = 2;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  static float exact(float x, const float* p) {
    const float v = Linear::exact(x, p), low = v < 0 ? 0.0f : v;
    return low > 1 ? 1.0f : low;
  }
#endif
  template <class T>
  static T f(T x, const double* p) {
    const T v = Linear::f(x, p);
    const T low = v < 0 ? T(0) : v;
    return low > 1 ? T(1) : low;
  }
#if defined(__AVX512F__)
  static void rows(double* x, Index n, const double* p) { linear_rows(x, n, p, 0.0, 1.0); }
#endif
};
struct HardSwish {  // x * clamp(alpha * x + beta, 0, 1)
  static constexpr const char* name = "hard_swish";
  static constexpr int params = 2;
  template <class T>
  static T f(T x, const double* p) {
    return x * HardSigmoid::f(x, p);
  }
};
struct HardSwish6 {  // x * clamp(x + 3, 0, 6) / 6: the exact sixth, where an alpha of 1/6 would be rounded
  static constexpr const char* name = "hard_swish6";
  template <class T>
  static T f(T x) {
    const T v = x + 3;
    const T low = v < 0 ? T(0) : v;
    return half_up(x, x * (low > 6 ? T(6) : low) / 6);
  }
};
struct GeluExact {  // x * Phi(x) = x/2 * erfc(-x / sqrt 2): no cancellation in the left tail
  static constexpr const char* name = "gelu_exact";
  // x Phi(x), Phi(-a) = e^(-a^2/2) R(a) / 2, where the square of a number of 26 bits is exact; R is the scaled erfc of
  // a / sqrt 2, its argument folded into the constants.
  static double f(double x) {
    constexpr double root = 0x1.6a09e667f3bcdp+0, four = 4.0 * root;
    const double c = math::at_most(37.66, std::fabs(x));  // where the exponential's scale is 0
    const double a = c + four, b = math::mad(2.0 * root, c, 2.0), inverse = 1.0 / (a * b);
    const double r = math::horner(math::kErfcx, (c - four) * (b * inverse)) * (a * inverse);
    double scale;
    const double q = math::exp_parts(-0.5 * c * c, scale), tail = math::mad(scale, q, scale) * r;
    // below 1/2 by two ulps at least, so that next to 0 the square is not lost, nor in the difference
    const double w = c * math::at_most(0.5 - 0x1p-53, tail);
    const double zero = math::from_bits(math::ubits(x) & (std::uint64_t{1} << 63));
    return (x > 0 ? x : zero) - w;
  }
#if defined(OPCONFORM_PIECES)
  static void rows(double* x, Index n, const double*) { pieces_or_f<GeluExact, pieces::kNormal>(x, n); }
#endif
#if defined(OPCONFORM_PIECES_OF_F32)
  static bool rows(const float* x, float* y, Index n) { return pieces_only<pieces::kNormal>(x, y, n); }
#endif
  static long double f(long double x) {
    const long double half = kSqrtHalf + static_cast<long double>(kSqrtHalfLow), t = -x * half;
    const long double rest = (kSqrtHalf - half) + kSqrtHalfLow;
    const long double lost = -x * rest - std::fma(x, half, t);
    const long double e = math::erfc(t) - std::sqrt(4 / kPi<long double>) * math::exp(-t * t) * lost;
    return x == kInf<long double> ? x : left_tail(x, x / 2 * e);
  }
};
struct GeluTanh {  // x/2 * (1 + tanh(t)) = x * sigmoid(2t),  2t = x (a + b x^2),  a = 2 sqrt(2/pi),  b = 0.044715 a
  static constexpr const char* name = "gelu_tanh";
  static double f(double x) {
    // exp magnifies the rounding of 2t by 2t: carry its low part along
    const double q = x * x, ql = std::fma(x, x, -q);
    const double w = kGeluB * q, wl = std::fma(kGeluB, q, -w) + (kGeluBLow * q + kGeluB * ql);
    const double s = kGeluA + w, z = s - kGeluA, sl = (kGeluA - (s - z)) + (w - z) + (kGeluALow + wl);
    const double r = x * s, rl = std::fma(x, s, -r) + x * sl;
    const double e = math::exp(-r);
    const double low = e < 0x1p1000 && std::fabs(rl) < 1 ? e * rl : 0.0;
    return left_tail(x, half_up(x, x / (1.0 + (e - low))));
  }
#if defined(OPCONFORM_PIECES)
  static void rows(double* x, Index n, const double*) { pieces_or_f<GeluTanh, pieces::kGeluTanh>(x, n); }
#endif
#if defined(OPCONFORM_PIECES_OF_F32)
  static bool rows(const float* x, float* y, Index n) { return pieces_only<pieces::kGeluTanh>(x, y, n); }
#endif
  static long double f(long double x) {
    const long double a = 2 * std::sqrt(2 / kPi<long double>);
    return left_tail(x, x / (1 + math::exp(-x * (a + a * 0.044715 * x * x))));
  }
};
struct GeluSigmoid {  // x * sigmoid(1.702 x)
  static constexpr const char* name = "gelu_sigmoid";
  static double f(double x) {
    const double r = 1.702 * x, rl = std::fma(1.702, x, -r);
    const double e = math::exp(-r);
    const double low = e < 0x1p1000 && std::fabs(rl) < 1 ? e * rl : 0.0;
    return left_tail(x, half_up(x, x / (1.0 + (e - low))));
  }
  static long double f(long double x) { return left_tail(x, x / (1 + math::exp(-(1.702 * x)))); }
};
struct Mish {  // x * tanh(log(1 + e^x)) = x * n / (n + 2),  n = e^x (e^x + 2)
  static constexpr const char* name = "mish";
  template <class T>
  static T f(T x) {
    const T e = math::exp(x < 60 ? x : T(60));
    const T n = e * (e + 2);
    return left_tail(x, x > 60 ? x : x * (n / (n + 2)));
  }
};
struct Swish {  // x * sigmoid(beta x)
  static constexpr const char* name = "swish";
  static constexpr int params = 1;
  template <class T>
  static T f(T x, const double* p) {
    const T z = p[0] * x, rest = add_odd(z * x / 4, -(z * z * z * x) / 48);
    const T y = beside_line(z, 0x1p-12, x / 2, rest, x / (1 + math::exp(-z)));
    return p[0] * x == -kInf<T> ? std::copysign(T(0), x) : y;  // the limit, where the product gives NaN
  }
};
struct ScaledTanh {
  static constexpr const char* name = "scaled_tanh";
  static constexpr int params = 2;
  template <class T>
  static T f(T x, const double* p) {
    const T z = p[1] * x, line = p[0] * p[1] * x;
    return beside_line(z, 0x1p-18, line, -(line * z * z) / 3, p[0] * math::tanh(z));
  }
};

// Predicates.
struct IsNan {
  static constexpr const char* name = "is_nan";
  static constexpr bool to_bool = true;
  static double f(double x) { return x != x ? 1.0 : 0.0; }
};
struct IsInf {  // p: detect negative, detect positive
  static constexpr const char* name = "is_inf";
  static constexpr int params = 2;
  static constexpr bool to_bool = true;
  static double f(double x, const double* p) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    return (x == inf && p[1] != 0) || (x == -inf && p[0] != 0) ? 1.0 : 0.0;
  }
};
struct LogicalNot {
  static constexpr const char* name = "logical_not";
  static constexpr bool to_bool = true;
  static double f(double x) { return x != 0 ? 0.0 : 1.0; }
  static S s(S x) { return x == 0; }
  static U u(U x) { return x == 0; }
};
struct BitwiseNot {
  static constexpr const char* name = "bitwise_not";
  static S s(S x) { return ~x; }
  static U u(U x) { return ~x; }
};

using All = List<Abs, Neg, Sign, Ceil, Floor, Trunc, RoundHalfEven, RoundHalfAway, Sqrt, Reciprocal, Square, Rsqrt, Exp, Exp2,
                 Expm1, Log, Log2, Log10, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh,
                 Erf, Erfc, Relu, Clamp, Sigmoid, LogSigmoid, Softplus, Softsign, Elu, Celu, Selu, LeakyRelu,
                 ThresholdedRelu, ThresholdedReluInclusive, HardSigmoid, HardSwish, HardSwish6, GeluExact, GeluTanh, GeluSigmoid, Mish, Swish,
                 ScaledTanh, Linear, IsNan, IsInf, LogicalNot, BitwiseNot>;

}  // namespace opconform::unary
