// Unary functors.  Each computes in f64 to within about an ulp of f64, so that one rounding to f32 or less is right but for
// the rare near tie; formulas are chosen against cancellation, not after a spec's spelling.
#pragma once

#include <cmath>
#include <limits>

#include "native_ref/kernels/elementwise/math.h"
#include "native_ref/kernels/elementwise/run.h"

namespace opconform::unary {

using U = std::uint64_t;
using S = std::int64_t;
inline constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;     // sqrt(1/2)
inline constexpr double kSqrt2OverPi = 0x1.9884533d43651p-1;  // sqrt(2/pi)

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
  static double f(double x) { return math::exp(x); }
};
struct Exp2 {
  static constexpr const char* name = "exp2";
  static double f(double x) { return math::exp2(x); }
};
struct Expm1 {
  static constexpr const char* name = "expm1";
  static double f(double x) { return math::expm1(x); }
};
struct Log {
  static constexpr const char* name = "log";
  static double f(double x) { return math::log(x); }
};
struct Log2 {
  static constexpr const char* name = "log2";
  static double f(double x) { return std::log2(x); }
};
struct Log10 {
  static constexpr const char* name = "log10";
  static double f(double x) { return std::log10(x); }
};
struct Log1p {
  static constexpr const char* name = "log1p";
  static double f(double x) { return math::log1p(x); }
};
struct Sin {
  static constexpr const char* name = "sin";
  static double f(double x) { return math::sin(x); }
};
struct Cos {
  static constexpr const char* name = "cos";
  static double f(double x) { return math::cos(x); }
};
struct Tan {
  static constexpr const char* name = "tan";
  static double f(double x) { return std::tan(x); }
};
struct Asin {
  static constexpr const char* name = "asin";
  static double f(double x) { return std::asin(x); }
};
struct Acos {
  static constexpr const char* name = "acos";
  static double f(double x) { return std::acos(x); }
};
struct Atan {
  static constexpr const char* name = "atan";
  static double f(double x) { return std::atan(x); }
};
struct Sinh {
  static constexpr const char* name = "sinh";
  static double f(double x) { return std::sinh(x); }
};
struct Cosh {
  static constexpr const char* name = "cosh";
  static double f(double x) { return std::cosh(x); }
};
struct Tanh {
  static constexpr const char* name = "tanh";
  static double f(double x) { return math::tanh(x); }
};
struct Asinh {
  static constexpr const char* name = "asinh";
  static double f(double x) { return std::asinh(x); }
};
struct Acosh {
  static constexpr const char* name = "acosh";
  static double f(double x) { return std::acosh(x); }
};
struct Atanh {
  static constexpr const char* name = "atanh";
  static double f(double x) { return std::atanh(x); }
};
struct Erf {
  static constexpr const char* name = "erf";
  static double f(double x) { return math::erf(x); }
};
struct Erfc {
  static constexpr const char* name = "erfc";
  static double f(double x) { return math::erfc(x); }
};

// Activations.  p[] holds the attributes in the order of the docstring in suites/semantics/elementwise.py.
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
  static double f(double x) { return 1.0 / (1.0 + math::exp(-x)); }
};
struct LogSigmoid {
  static constexpr const char* name = "log_sigmoid";
  static double f(double x) { return (x < 0 ? x : 0.0 * x) - math::log1p(math::exp(-std::fabs(x))); }
};
// log(1 + e^x) without overflow, and without loss where e^x is small
inline double softplus(double x) { return (x > 0 ? x : 0.0) + math::log1p(math::exp(-std::fabs(x))); }
struct Softplus {
  static constexpr const char* name = "softplus";
  static double f(double x) { return softplus(x); }
};
struct Softsign {
  static constexpr const char* name = "softsign";
  static double f(double x) {
    const double a = std::fabs(x);
    return a == std::numeric_limits<double>::infinity() ? std::copysign(1.0, x) : x / (1.0 + a);
  }
};
struct Elu {
  static constexpr const char* name = "elu";
  static constexpr int params = 1;
  static double f(double x, const double* p) { return x > 0 ? x : p[0] * math::expm1(x); }
};
struct Celu {  // max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
  static constexpr const char* name = "celu";
  static constexpr int params = 1;
  static double f(double x, const double* p) {
    const double a = p[0] * math::expm1(x / p[0]);
    return (x < 0 ? 0.0 : x) + (a > 0 ? 0.0 : a);
  }
};
struct Selu {  // alpha, gamma
  static constexpr const char* name = "selu";
  static constexpr int params = 2;
  static double f(double x, const double* p) { return x > 0 ? p[1] * x : p[1] * (p[0] * math::expm1(x)); }
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
struct HardSigmoid {
  static constexpr const char* name = "hard_sigmoid";
  static constexpr int params = 2;
  static double f(double x, const double* p) {
    const double v = p[0] * x + p[1];
    const double low = v < 0 ? 0.0 : v;
    return low > 1 ? 1.0 : low;
  }
};
struct HardSwish {  // x * clamp(alpha * x + beta, 0, 1)
  static constexpr const char* name = "hard_swish";
  static constexpr int params = 2;
  static double f(double x, const double* p) { return x * HardSigmoid::f(x, p); }
};
struct HardSwish6 {  // x * clamp(x + 3, 0, 6) / 6: the exact sixth, where an alpha of 1/6 would be rounded
  static constexpr const char* name = "hard_swish6";
  static double f(double x) {
    const double v = x + 3.0;
    const double low = v < 0 ? 0.0 : v;
    return x * (low > 6 ? 6.0 : low) / 6.0;
  }
};
struct GeluExact {  // x * Phi(x) = x/2 * erfc(-x / sqrt 2): no cancellation in the left tail
  static constexpr const char* name = "gelu_exact";
  static double f(double x) {
    const double v = 0.5 * x * math::erfc(-x * kSqrtHalf);
    return x == -std::numeric_limits<double>::infinity() ? -0.0 : v;
  }
};
struct GeluTanh {  // x/2 * (1 + tanh(t)) = x * sigmoid(2t),  t = sqrt(2/pi) * (x + 0.044715 x^3)
  static constexpr const char* name = "gelu_tanh";
  static double f(double x) {
    const double t = kSqrt2OverPi * (x + 0.044715 * (x * x * x));
    const double v = x / (1.0 + math::exp(-2.0 * t));
    return x == -std::numeric_limits<double>::infinity() ? -0.0 : v;
  }
};
struct GeluSigmoid {  // x * sigmoid(1.702 x)
  static constexpr const char* name = "gelu_sigmoid";
  static double f(double x) {
    const double v = x / (1.0 + math::exp(-1.702 * x));
    return x == -std::numeric_limits<double>::infinity() ? -0.0 : v;
  }
};
struct Mish {  // x * tanh(log(1 + e^x)) = x * n / (n + 2),  n = e^x (e^x + 2)
  static constexpr const char* name = "mish";
  static double f(double x) {
    const double e = math::exp(x < 40 ? x : 40.0);
    const double n = e * (e + 2.0);
    const double v = x > 40 ? x : x * (n / (n + 2.0));
    return x == -std::numeric_limits<double>::infinity() ? -0.0 : v;
  }
};
struct Swish {  // x * sigmoid(beta x)
  static constexpr const char* name = "swish";
  static constexpr int params = 1;
  static double f(double x, const double* p) { return x / (1.0 + math::exp(-p[0] * x)); }
};
struct ScaledTanh {
  static constexpr const char* name = "scaled_tanh";
  static constexpr int params = 2;
  static double f(double x, const double* p) { return p[0] * math::tanh(p[1] * x); }
};
struct Linear {
  static constexpr const char* name = "linear";
  static constexpr int params = 2;
  static double f(double x, const double* p) { return p[0] * x + p[1]; }
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
