// Binary functors: floats in f64, integers exactly in 64 bits (the store wraps to the type's width).
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "native_ref/kernels/elementwise/math.h"
#include "native_ref/kernels/elementwise/pow.h"
#include "native_ref/kernels/elementwise/run.h"

namespace opconform::binary {

using U = std::uint64_t;
using S = std::int64_t;

using math::bits;
using math::from_bits;

inline S wrap(U v) { return static_cast<S>(v); }

// The four operations on f32 are the ones on f64 rounded once more: f64 has more than twice the bits of f32 and two.
struct Add {
  static constexpr const char* name = "add";
  static double f(double x, double y) { return x + y; }
  static float exact(float x, float y) { return x + y; }
  static S s(S x, S y) { return wrap(static_cast<U>(x) + static_cast<U>(y)); }
  static U u(U x, U y) { return x + y; }
};
struct Sub {
  static constexpr const char* name = "sub";
  static double f(double x, double y) { return x - y; }
  static float exact(float x, float y) { return x - y; }
  static S s(S x, S y) { return wrap(static_cast<U>(x) - static_cast<U>(y)); }
  static U u(U x, U y) { return x - y; }
};
struct Mul {
  static constexpr const char* name = "mul";
  static double f(double x, double y) { return x * y; }
  static float exact(float x, float y) { return x * y; }
  static S s(S x, S y) { return wrap(static_cast<U>(x) * static_cast<U>(y)); }
  static U u(U x, U y) { return x * y; }
};

// Integer division: a zero divisor has no meaning in any spec; here it gives 0 (and the rest x) rather than a trap.  The
// one overflow, lowest / -1, wraps onto the lowest.
inline S quotient(S x, S y) { return y == 0 ? 0 : y == -1 ? wrap(0 - static_cast<U>(x)) : x / y; }
inline S rest(S x, S y) { return y == 0 ? x : y == -1 ? 0 : x % y; }

struct Div {  // integers: toward zero
  static constexpr const char* name = "div";
  static double f(double x, double y) { return x / y; }
  static float exact(float x, float y) { return x / y; }
  static S s(S x, S y) { return quotient(x, y); }
  static U u(U x, U y) { return y == 0 ? 0 : x / y; }
};
struct FloorDiv {
  static constexpr const char* name = "floor_div";
  // floor of the exact quotient: x/y may round up to an integer, so the remainder decides
  static double f(double x, double y) {
    const double q = std::floor(x / y);
    if (!(std::fabs(q) < 0x1p53) || q != q) return q;
    const double r = std::fma(-q, y, x);  // x - q y; its sign is exact
    if (r != 0 && (r < 0) != (y < 0) && std::fabs(y) != std::numeric_limits<double>::infinity()) return q - 1.0;
    return q;
  }
  static S s(S x, S y) { return quotient(x, y) - (rest(x, y) != 0 && y != 0 && (rest(x, y) < 0) != (y < 0) ? 1 : 0); }
  static U u(U x, U y) { return y == 0 ? 0 : x / y; }
};
struct TruncDiv {
  static constexpr const char* name = "trunc_div";
  static double f(double x, double y) {
    const double q = FloorDiv::f(std::fabs(x), std::fabs(y));
    return std::signbit(x) == std::signbit(y) ? q : -q;
  }
  static S s(S x, S y) { return quotient(x, y); }
  static U u(U x, U y) { return y == 0 ? 0 : x / y; }
};
struct Fmod {  // sign of the dividend; exact
  static constexpr const char* name = "fmod";
  static double f(double x, double y) { return std::fmod(x, y); }
  static S s(S x, S y) { return rest(x, y); }
  static U u(U x, U y) { return y == 0 ? x : x % y; }
};
struct FloorMod {  // sign of the divisor
  static constexpr const char* name = "floor_mod";
  static double f(double x, double y) {
    const double r = std::fmod(x, y);
    if (r == 0) return std::copysign(0.0, y);  // as Python and NumPy
    return (r < 0) != (y < 0) ? r + y : r;
  }
  static S s(S x, S y) {
    const S r = rest(x, y);
    return r != 0 && y != 0 && (r < 0) != (y < 0) ? r + y : r;
  }
  static U u(U x, U y) { return y == 0 ? x : x % y; }
};

inline U power(U x, U y) {
  U r = 1;
  for (; y; y >>= 1, x *= x)
    if (y & 1) r *= x;
  return r;
}
struct Pow {
  static constexpr const char* name = "pow";
  template <class T>
  static T f(T x, T y) { return math::pow(x, y); }
  static double slow(double x, double y) { return std::pow(x, y); }  // where f gives NaN, and for 64-bit operands
#if defined(OPCONFORM_PACKS)
  static constexpr bool packs = true;
  static float exact(float x, float y) {
    const double v = f<double>(x, y);
    return static_cast<float>(v == v ? v : slow(x, y));
  }
#endif
  // exact modulo 2^64; a negative power of an integer is its truncation: 1, -1 or 0
  static S s(S x, S y) {
    if (y >= 0) return wrap(power(static_cast<U>(x), static_cast<U>(y)));
    return x == 1 ? 1 : x == -1 ? ((y & 1) ? -1 : 1) : 0;
  }
  static U u(U x, U y) { return power(x, y); }
};
// maximum and minimum give NaN when either is NaN; of two zeros the positive (negative) one, as IEEE 754-2019 asks.
struct Maximum {
  static constexpr const char* name = "maximum";
  static double f(double x, double y) {
    const double zeros = from_bits(bits(x) & bits(y));  // of equal numbers: the number, of two zeros the positive one
    const double m = x > y ? x : x == y ? zeros : y;
    return x != x ? x : m;
  }
  static float exact(float x, float y) {
    const float zeros = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & std::bit_cast<std::uint32_t>(y));
    const float m = x > y ? x : x == y ? zeros : y;
    return math::quiet(x != x ? x : m);
  }
  static S s(S x, S y) { return x > y ? x : y; }
  static U u(U x, U y) { return x > y ? x : y; }
};
struct Minimum {
  static constexpr const char* name = "minimum";
  static double f(double x, double y) {
    const double zeros = from_bits(bits(x) | bits(y));
    const double m = x < y ? x : x == y ? zeros : y;
    return x != x ? x : m;
  }
  static float exact(float x, float y) {
    const float zeros = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) | std::bit_cast<std::uint32_t>(y));
    const float m = x < y ? x : x == y ? zeros : y;
    return math::quiet(x != x ? x : m);
  }
  static S s(S x, S y) { return x < y ? x : y; }
  static U u(U x, U y) { return x < y ? x : y; }
};
struct Fmax {  // a number wins over NaN
  static constexpr const char* name = "fmax";
  static double f(double x, double y) { return x != x ? y : y != y ? x : Maximum::f(x, y); }
};
struct Fmin {
  static constexpr const char* name = "fmin";
  static double f(double x, double y) { return x != x ? y : y != y ? x : Minimum::f(x, y); }
};
struct SquaredDifference {
  static constexpr const char* name = "squared_difference";
  static double f(double x, double y) { return (x - y) * (x - y); }
  static S s(S x, S y) {
    const U d = static_cast<U>(x) - static_cast<U>(y);
    return wrap(d * d);
  }
  static U u(U x, U y) { return (x - y) * (x - y); }
};
struct Atan2 {
  static constexpr const char* name = "atan2";
  static double f(double y, double x) { return std::atan2(y, x); }
};
struct Prelu {  // x, slope
  static constexpr const char* name = "prelu";
  static double f(double x, double a) { return x < 0 ? a * x : x; }
  static S s(S x, S a) { return x < 0 ? wrap(static_cast<U>(a) * static_cast<U>(x)) : x; }
  static U u(U x, U) { return x; }
};

struct Equal {
  static constexpr const char* name = "equal";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return x == y; }
  static bool exact(float x, float y) { return x == y; }
  static bool s(S x, S y) { return x == y; }
  static bool u(U x, U y) { return x == y; }
};
struct NotEqual {
  static constexpr const char* name = "not_equal";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return x != y; }
  static bool exact(float x, float y) { return x != y; }
  static bool s(S x, S y) { return x != y; }
  static bool u(U x, U y) { return x != y; }
};
struct Less {
  static constexpr const char* name = "less";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return x < y; }
  static bool exact(float x, float y) { return x < y; }
  static bool s(S x, S y) { return x < y; }
  static bool u(U x, U y) { return x < y; }
};
struct LessEqual {
  static constexpr const char* name = "less_equal";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return x <= y; }
  static bool exact(float x, float y) { return x <= y; }
  static bool s(S x, S y) { return x <= y; }
  static bool u(U x, U y) { return x <= y; }
};
struct Greater {
  static constexpr const char* name = "greater";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return x > y; }
  static bool exact(float x, float y) { return x > y; }
  static bool s(S x, S y) { return x > y; }
  static bool u(U x, U y) { return x > y; }
};
struct GreaterEqual {
  static constexpr const char* name = "greater_equal";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return x >= y; }
  static bool exact(float x, float y) { return x >= y; }
  static bool s(S x, S y) { return x >= y; }
  static bool u(U x, U y) { return x >= y; }
};
struct LogicalAnd {
  static constexpr const char* name = "logical_and";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return x != 0 && y != 0; }
  static bool s(S x, S y) { return x != 0 && y != 0; }
  static bool u(U x, U y) { return x != 0 && y != 0; }
};
struct LogicalOr {
  static constexpr const char* name = "logical_or";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return x != 0 || y != 0; }
  static bool s(S x, S y) { return x != 0 || y != 0; }
  static bool u(U x, U y) { return x != 0 || y != 0; }
};
struct LogicalXor {
  static constexpr const char* name = "logical_xor";
  static constexpr bool to_bool = true;
  static bool f(double x, double y) { return (x != 0) != (y != 0); }
  static bool s(S x, S y) { return (x != 0) != (y != 0); }
  static bool u(U x, U y) { return (x != 0) != (y != 0); }
};
struct BitwiseAnd {
  static constexpr const char* name = "bitwise_and";
  static S s(S x, S y) { return x & y; }
  static U u(U x, U y) { return x & y; }
};
struct BitwiseOr {
  static constexpr const char* name = "bitwise_or";
  static S s(S x, S y) { return x | y; }
  static U u(U x, U y) { return x | y; }
};
struct BitwiseXor {
  static constexpr const char* name = "bitwise_xor";
  static S s(S x, S y) { return x ^ y; }
  static U u(U x, U y) { return x ^ y; }
};
// Shifts by the width or more leave nothing (or the sign); a negative count counts as that much, too.
struct ShiftLeft {
  static constexpr const char* name = "shift_left";
  static S s(S x, S y, int bits) { return y < 0 || y >= bits ? 0 : wrap(static_cast<U>(x) << y); }
  static U u(U x, U y, int bits) { return y >= static_cast<U>(bits) ? 0 : x << y; }
};
struct ShiftRight {
  static constexpr const char* name = "shift_right";
  static S s(S x, S y, int bits) { return x >> (y < 0 || y >= bits ? 63 : y); }
  static U u(U x, U y, int bits) { return y >= static_cast<U>(bits) ? 0 : x >> y; }
};

using All = List<Add, Sub, Mul, Div, FloorDiv, TruncDiv, Fmod, FloorMod, Pow, Maximum, Minimum, Fmax, Fmin,
                 SquaredDifference, Atan2, Prelu, Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, LogicalAnd,
                 LogicalOr, LogicalXor, BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight>;

}  // namespace opconform::binary
