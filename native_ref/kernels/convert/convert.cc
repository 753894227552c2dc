#include "native_ref/kernels/convert/convert.h"

#include <algorithm>
#include <bit>

#include "native_ref/core/block.h"
#include "native_ref/core/float_format.h"
#include "native_ref/core/half.h"

namespace opconform {
namespace {

// Real (part 0) or imaginary (part 1) halves of a complex tensor as a float tensor.
Tensor half(const Tensor& t, int part) {
  Tensor r = t;
  r.dtype = t.dtype == DType::c64 ? DType::f32 : DType::f64;
  r.data += part * r.bytes();
  return r;
}

// A 64-bit integer as an f64 that a later rounding to at most 24 bits takes to the right value: bits that f64 could not
// hold are folded into the lowest one kept (rounding to odd).
double jam(std::int64_t v, bool is_signed) {
  const bool negative = is_signed && v < 0;
  std::uint64_t m = negative ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  if (m >= (1ull << 53)) m = (m & ~0x7ffull) | ((m & 0x7ff) ? 0x800ull : 0ull);
  const double d = static_cast<double>(m);
  return negative ? -d : d;
}

// A 64-bit integer rounded to the 53 bits of f64.
double rounded(std::int64_t v, bool is_signed, Rounding mode) {
  const bool negative = is_signed && v < 0;
  const std::uint64_t m = negative ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  const int lost = std::max(0, 11 - std::countl_zero(m | 1));  // bits below the last place kept
  const std::uint64_t unit = 1ull << lost, rest = m & (unit - 1), half = unit >> 1;
  const bool odd = (m >> lost) & 1;
  bool away = false;
  switch (mode) {
    case Rounding::even: away = rest > half || (rest == half && rest != 0 && odd); break;
    case Rounding::zero: break;
    case Rounding::up: away = rest != 0 && !negative; break;
    case Rounding::down: away = rest != 0 && negative; break;
    case Rounding::away: away = rest != 0 && rest >= half; break;
    case Rounding::odd: away = rest != 0 && !odd; break;
  }
  const double d = static_cast<double>(m - rest) + (away ? static_cast<double>(unit) : 0.0);
  return negative ? -d : d;
}

template <class F>
void round_block(double* x, Index n, Rounding mode, bool saturate) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (Index i = 0; i < n; ++i) {
    const double m = std::fabs(x[i]);
    if (x[i] != x[i]) continue;
    double r = m == inf ? m : round_any<F>(m, std::signbit(x[i]), mode);
    if (r > max_finite<F>()) {
      // directed roundings toward zero stop at the largest finite value, as in IEEE 754
      const bool inward = m != inf && (mode == Rounding::zero || (mode == Rounding::up && std::signbit(x[i])) ||
                                       (mode == Rounding::down && !std::signbit(x[i])) || mode == Rounding::odd);
      if (saturate || inward) r = max_finite<F>();
    }
    x[i] = std::copysign(r, x[i]);
  }
}

using RoundBlock = void (*)(double*, Index, Rounding, bool);
using F32 = Format<8, 23, 127, Special::ieee>;

RoundBlock rounder(DType d) {
  switch (d) {
    case DType::f32: return round_block<F32>;
    case DType::f16: return round_block<F16>;
    case DType::bf16: return round_block<BF16>;
    case DType::f8e4m3fn: return round_block<E4M3FN>;
    case DType::f8e4m3fnuz: return round_block<E4M3FNUZ>;
    case DType::f8e5m2: return round_block<E5M2>;
    case DType::f8e5m2fnuz: return round_block<E5M2FNUZ>;
    case DType::f4e2m1: return round_block<E2M1>;
    case DType::f6e2m3: return round_block<E2M3>;
    case DType::f6e3m2: return round_block<E3M2>;
    default: return nullptr;
  }
}

// To an integral value; the store then truncates (nothing left to do) and saturates.
void round_integral(double* x, Index n, Rounding mode) {
  for (Index i = 0; i < n; ++i) {
    const double v = x[i];
    switch (mode) {
      case Rounding::even: x[i] = std::nearbyint(v); break;
      case Rounding::zero: x[i] = std::trunc(v); break;
      case Rounding::up: x[i] = std::ceil(v); break;
      case Rounding::down: x[i] = std::floor(v); break;
      case Rounding::away: x[i] = std::round(v); break;
      case Rounding::odd: {
        const double t = std::trunc(v);
        x[i] = t != v && std::fmod(t, 2.0) == 0 ? t + std::copysign(1.0, v) : t;
        break;
      }
    }
  }
}

// from the type's value range to the destination's, both as 64-bit patterns
void clamp_ints(std::int64_t* x, Index n, DType from, DType to) {
  const int bits = info(to).bits;
  const std::uint64_t top = is_bool(to)   ? 1
                            : is_sint(to) ? (1ull << (bits - 1)) - 1
                                          : (bits == 64 ? ~0ull : (1ull << bits) - 1);
  const std::int64_t low = is_sint(to) ? -static_cast<std::int64_t>((1ull << (bits - 1)) - 1) - 1 : 0;
  for (Index i = 0; i < n; ++i) {
    if (is_sint(from) && x[i] < 0)
      x[i] = std::max(x[i], low);
    else if (static_cast<std::uint64_t>(x[i]) > top)
      x[i] = static_cast<std::int64_t>(top);
  }
}

template <class T, class Fn>
void through(Reader& in, Writer& out, Fn&& fn) {
  T block[kBlock];
  for (Index left = in.total(); left > 0;) {
    const Index n = std::min(left, kBlock);
    in.next(block, n);
    fn(block, n);
    out.next(block, n);
    left -= n;
  }
}

void zero(const Tensor& y) {
  Writer out(y);
  const double block[kBlock]{};
  for (Index left = y.size(); left > 0; left -= kBlock) out.next(block, std::min(left, kBlock));
}

bool is_complex(DType d) { return info(d).kind == Kind::complex; }

void convert(const Tensor& x, const Tensor& y, int rounding, bool saturate) {
  // unless told otherwise: nearest even to a float type, toward zero to an integer type
  const auto mode = rounding >= 0                            ? static_cast<Rounding>(rounding)
                    : is_int(y.dtype) && !is_bool(y.dtype) ? Rounding::zero
                                                             : Rounding::even;
  if (is_complex(x.dtype) || is_complex(y.dtype)) {
    const Tensor re = is_complex(x.dtype) ? half(x, 0) : x;
    if (!is_complex(y.dtype)) return convert(re, y, rounding, saturate);
    convert(re, half(y, 0), rounding, saturate);
    if (is_complex(x.dtype)) return convert(half(x, 1), half(y, 1), rounding, saturate);
    return zero(half(y, 1));
  }
  Reader in(x);
  Writer out(y);
  if (is_int(x.dtype) && is_int(y.dtype)) {
    through<std::int64_t>(in, out, [&](std::int64_t* b, Index n) {
      if (saturate) clamp_ints(b, n, x.dtype, y.dtype);
    });
    return;
  }
  const bool wide_int = info(x.dtype).bits == 64 && is_int(x.dtype) && (y.dtype != DType::f64 || mode != Rounding::even);
  const RoundBlock special =
      (mode != Rounding::even || saturate) && is_float(y.dtype) ? rounder(y.dtype) : nullptr;
  double block[kBlock];
  const auto read = [&](Index n) {
    if (!wide_int) return in.next(block, n);
    std::int64_t ints[kBlock];
    in.next(ints, n);
    const bool is_signed = is_sint(x.dtype);
    for (Index i = 0; i < n; ++i)
      block[i] = y.dtype == DType::f64 ? rounded(ints[i], is_signed, mode) : jam(ints[i], is_signed);
  };
  if (y.dtype == DType::f8e8m0 && x.dtype != DType::f8e8m0) {
    Walk<1> to({&y});
    for (Index left = in.total(); left > 0;) {
      const Index n = std::min({left, kBlock, to.run()});
      read(n);
      for (Index i = 0; i < n; ++i)
        to.ptr(0)[i * to.step(0)] = static_cast<char>(static_cast<std::uint8_t>(encode_e8m0(block[i], mode, saturate)));
      to.advance(n);
      left -= n;
    }
    return;
  }
  if (wide_int) {
    for (Index left = in.total(); left > 0;) {
      const Index n = std::min(left, kBlock);
      read(n);
      if (special) special(block, n, mode, saturate);
      out.next(block, n);
      left -= n;
    }
    return;
  }
  if (x.dtype == DType::f32 && !special && x.contiguous() && y.contiguous()) {
    if (y.dtype == DType::f16) return half::narrow_row<F16>(x.data, y.data, x.size());
    if (y.dtype == DType::bf16) return half::narrow_row<BF16>(x.data, y.data, x.size());
  }
  if (y.dtype == DType::f32 && !special && x.contiguous() && y.contiguous()) {
    if (x.dtype == DType::f16) return half::widen_row<F16>(x.data, y.data, x.size());
    if (x.dtype == DType::bf16) return half::widen_row<BF16>(x.data, y.data, x.size());
  }
  through<double>(in, out, [&](double* b, Index n) {
    if (special)
      special(b, n, mode, saturate);
    else if (is_int(y.dtype) && !is_bool(y.dtype) && mode != Rounding::zero)
      round_integral(b, n, mode);
  });
}

}  // namespace

OPCONFORM_TABLE const ConvertTable opconform_convert{sizeof(ConvertTable), convert};

}  // namespace opconform
