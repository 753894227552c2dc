#include "native_ref/kernels/compare/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "native_ref/core/block.h"
#include "native_ref/core/float_format.h"

namespace opconform {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::int64_t bits_of(double v) { return std::bit_cast<std::int64_t>(v); }

// What the comparison needs to know of a float type.
struct Shape {
  int frac;
  std::int64_t low, high;  // exponent fields (f64 bias) of the smallest normal and of the largest finite value
  double smallest;         // normal
  double overflow;         // from here on values round to infinity
  bool has_inf;
};

template <class F>
constexpr Shape shape_of() {
  const double top = max_finite<F>();
  const std::int64_t field = (std::bit_cast<std::int64_t>(top) >> 52);
  const double half_ulp = std::bit_cast<double>((field - F::frac - 1) << 52);
  return {F::frac, F::min_exp + 1023, field, std::bit_cast<double>(static_cast<std::int64_t>(F::min_exp + 1023) << 52),
          top + half_ulp, F::special == Special::ieee};
}

Shape shape(DType d) {
  switch (d) {
    case DType::f32: return shape_of<Format<8, 23, 127, Special::ieee>>();
    case DType::f16: return shape_of<F16>();
    case DType::bf16: return shape_of<BF16>();
    case DType::f8e4m3fn: return shape_of<E4M3FN>();
    case DType::f8e4m3fnuz: return shape_of<E4M3FNUZ>();
    case DType::f8e5m2: return shape_of<E5M2>();
    case DType::f8e5m2fnuz: return shape_of<E5M2FNUZ>();
    case DType::f4e2m1: return shape_of<E2M1>();
    case DType::f6e2m3: return shape_of<E2M3>();
    case DType::f6e3m2: return shape_of<E3M2>();
    case DType::f8e8m0: return {0, 1023 - 127, 1023 + 127, 0x1p-127, 0x1.8p127, false};
    default: return {52, 1, 2046, 0x1p-1022, std::numeric_limits<double>::max(), true};
  }
}

// ulp(w) as an f64, which for f64 itself may be subnormal
template <bool F64>
double ulp_of(double w, const Shape& s) {
  std::int64_t field = (bits_of(w) >> 52) & 0x7ff;
  field = std::min(std::max(field, s.low), s.high) - s.frac;
  if constexpr (F64)
    return field > 0 ? std::bit_cast<double>(field << 52) : std::bit_cast<double>(std::int64_t{1} << (field + 51));
  else
    return std::bit_cast<double>(field << 52);
}

struct Judge {
  const Shape s;
  const CompareOptions& o;
  Comparison& out;

  void worse(double ratio, Index at) {
    if (ratio > out.max_ratio || (ratio == out.max_ratio && out.worst < 0 && ratio > 0)) {
      out.max_ratio = ratio;
      out.worst = at;
    }
  }

  // The definition, one element.  Returns whether it passes.
  template <bool F64>
  bool element(double a, double w, double bound, Index at) {
    const double ulp = ulp_of<F64>(w, s);
    const double t = o.ulps > 0 ? bound + o.ulps * ulp : bound;
    const bool anan = a != a, wnan = w != w;
    if (wnan) {
      if (anan) return true;
      ++out.nan_bad;
      worse(kInf, at);
      return false;
    }
    const bool winf = std::fabs(w) == kInf;
    if (!winf && t > 0.1 * std::fabs(w)) ++out.uninformative;
    if (w == 0) ++out.zeros;
    if (t == kInf && !anan) return true;
    if (anan) {
      if (!s.has_inf && !winf && std::fabs(w) + t >= s.overflow) return true;
      ++out.nan_bad;
      worse(kInf, at);
      return false;
    }
    const bool ainf = std::fabs(a) == kInf;
    if (ainf || winf) {
      if (ainf && winf && std::signbit(a) == std::signbit(w)) return true;
      if (ainf && !winf && std::signbit(a) == std::signbit(w) && std::fabs(w) + t >= s.overflow) return true;
      ++out.inf_bad;
      worse(kInf, at);
      return false;
    }
    const double d = std::fabs(a - w);
    out.max_abs = std::max(out.max_abs, d);
    out.max_ulp = std::max(out.max_ulp, d / ulp);
    if (a == 0 && w == 0) {
      if (std::signbit(a) == std::signbit(w)) return true;
      ++out.zero_sign;
      if (!o.signed_zero) return true;
      worse(kInf, at);
      return false;
    }
    const bool flushed = a == 0 && std::fabs(w) < s.smallest;
    if (flushed) ++out.flushed;
    if (d <= t) {
      if (d > 0) worse(d / t, at);
      return true;
    }
    if (flushed && o.flush) return true;
    worse(t > 0 ? d / t : kInf, at);
    return false;
  }

  void fail(Index at) {
    if (out.first < 0) out.first = at;
    ++out.bad;
  }

  // A block in lanes; what is not plainly in order goes through element() as a whole block.
  template <bool F64>
  void block(const double* a, const double* w, const double* bound, Index n, Index at) {
    const double k = o.ulps, factor = out.max_ratio;
    std::int64_t odd = 0, worst_abs = 0, worst_ulp = 0, dull = 0, zeros = 0;
    for (Index i = 0; i < n; ++i) {
      const double ulp = ulp_of<F64>(w[i], s);
      const double t = bound[i] + k * ulp;
      const double d = std::fabs(a[i] - w[i]);
      const double m = std::fabs(w[i]);
      // not within t, a non-number somewhere, nearer to t than anything so far, or a zero that needs a closer look
      odd |= !(d <= t) | !(t < kInf) | (d > factor * t) | ((a[i] == 0) & (bits_of(a[i]) != bits_of(w[i])));
      dull += t > 0.1 * m;
      zeros += m == 0;
      worst_abs = std::max(worst_abs, bits_of(d));
      if constexpr (F64)
        worst_ulp = std::max(worst_ulp, bits_of(d / ulp));
      else
        worst_ulp = std::max(worst_ulp, bits_of(d * std::bit_cast<double>((2046ll << 52) - bits_of(ulp))));
    }
    if (odd) {
      for (Index i = 0; i < n; ++i)
        if (!element<F64>(a[i], w[i], bound[i], at + i)) fail(at + i);
      return;
    }
    out.uninformative += dull;
    out.zeros += zeros;
    out.max_abs = std::max(out.max_abs, std::bit_cast<double>(worst_abs));
    out.max_ulp = std::max(out.max_ulp, std::bit_cast<double>(worst_ulp));
  }
};

template <bool F64>
void floats(const Tensor& a, const Tensor& w, const Tensor& bound, const CompareOptions& o, Comparison& out,
            std::uint8_t* mask, double* ulp) {
  Reader ra(a), rw(w), rb(bound);
  Judge judge{shape(a.dtype), o, out};
  double room[3][kBlock];
  for (Index at = 0; at < out.size; at += kBlock) {
    const Index n = std::min(kBlock, out.size - at);
    const double *ba = ra.look(room[0], n), *bw = rw.look(room[1], n), *bb = rb.look(room[2], n);
    if (!mask && !ulp) {
      judge.block<F64>(ba, bw, bb, n, at);
      continue;
    }
    for (Index i = 0; i < n; ++i) {
      const bool good = judge.element<F64>(ba[i], bw[i], bb[i], at + i);
      if (!good) judge.fail(at + i);
      if (mask) mask[at + i] = !good;
      if (ulp) {
        const double d = std::fabs(ba[i] - bw[i]);
        const bool same = std::bit_cast<std::uint64_t>(ba[i]) == std::bit_cast<std::uint64_t>(bw[i]) ||
                          (ba[i] != ba[i] && bw[i] != bw[i]);
        ulp[at + i] = same ? 0.0 : d != d ? kInf : d / ulp_of<F64>(bw[i], judge.s);
      }
    }
  }
}

// |a - b| of two values whose order is known from their signedness
std::uint64_t distance(std::int64_t a, std::int64_t b, bool is_signed) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  return (is_signed ? a < b : x < y) ? y - x : x - y;
}

void integers(const Tensor& a, const Tensor& w, const Tensor& bound, Comparison& out, std::uint8_t* mask, double* ulp) {
  Reader ra(a), rw(w), rb(bound);
  const bool is_signed = is_sint(a.dtype);
  std::int64_t ba[kBlock], bw[kBlock];
  double bb[kBlock];
  for (Index at = 0; at < out.size; at += kBlock) {
    const Index n = std::min(kBlock, out.size - at);
    ra.next(ba, n);
    rw.next(bw, n);
    rb.next(bb, n);
    std::int64_t odd = 0, zeros = 0;
    for (Index i = 0; i < n; ++i) {
      odd |= ba[i] ^ bw[i];
      zeros += bw[i] == 0;
    }
    out.zeros += zeros;
    for (Index i = 0; i < n; ++i) {
      if (mask) mask[at + i] = 0;
      if (ulp) ulp[at + i] = 0;
    }
    if (!odd) continue;
    for (Index i = 0; i < n; ++i) {
      const std::uint64_t d = distance(ba[i], bw[i], is_signed);
      if (d == 0) continue;
      const auto size = static_cast<double>(d);
      out.max_abs = std::max(out.max_abs, size);
      if (ulp) ulp[at + i] = size;
      // the bound is a small count; d is compared exactly, not through its f64
      const bool good = bb[i] >= 0x1p63 || (bb[i] > 0 && d <= static_cast<std::uint64_t>(bb[i]));
      const double ratio = bb[i] > 0 ? size / bb[i] : kInf;
      if (ratio > out.max_ratio) {
        out.max_ratio = ratio;
        out.worst = at + i;
      }
      if (good) continue;
      if (mask) mask[at + i] = 1;
      if (out.first < 0) out.first = at + i;
      ++out.bad;
    }
  }
  out.max_ulp = out.max_abs;
}

void compare(const Tensor& a, const Tensor& w, const Tensor& bound, const CompareOptions& o, Comparison& out,
             std::uint8_t* mask, double* ulp) {
  out.size = a.size();
  if (is_int(a.dtype) && is_int(w.dtype))
    integers(a, w, bound, out, mask, ulp);
  else if (a.dtype == DType::f64)
    floats<true>(a, w, bound, o, out, mask, ulp);
  else
    floats<false>(a, w, bound, o, out, mask, ulp);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.contiguous() && b.contiguous() && std::memcmp(a.data, b.data, static_cast<std::size_t>(a.size() * a.bytes())) == 0;
}

// Mostly zeros, one value (of the types that NumPy calls floats), or NaN and infinities.
bool dull(const Tensor& value, const Tensor& wide, const Comparison& c) {
  if (c.size < kSmall) return false;
  const double size = static_cast<double>(c.size);
  if (static_cast<double>(c.zeros) > kDull * size) return true;
  Reader rv(value), rw(wide);
  double v[kBlock], w[kBlock], first = 0;
  bool one = value.dtype == DType::f64 || value.dtype == DType::f32 || value.dtype == DType::f16 || value.dtype == DType::f8e5m2;
  Index finite = 0;
  for (Index at = 0; at < c.size; at += kBlock) {
    const Index n = std::min(kBlock, c.size - at);
    rv.next(v, n);
    rw.next(w, n);
    if (at == 0) first = v[0];
    for (Index i = 0; i < n; ++i) {
      one &= v[i] == first;
      finite += std::fabs(w[i]) < kInf;
    }
  }
  return one || static_cast<double>(finite) < (1 - kDull) * size;
}

Brief brief(const Tensor& a, const Tensor& value, const Tensor* wide, Judging how, const CompareOptions& options) {
  if (a.size() == 0) return Brief::agrees;
  const double zero = 0;
  Tensor bound;
  bound.data = reinterpret_cast<char*>(const_cast<double*>(&zero));
  bound.rank = a.rank;
  bound.shape = a.shape;
  CompareOptions o = options;
  Comparison c;
  const bool rounded = is_int(a.dtype) || how == Judging::value || wide == nullptr;
  if (rounded) {
    if (how != Judging::ulps) o.ulps = 0;
    if (!o.flush && same_bits(a, value)) return Brief::agrees;
  }
  compare(a, rounded ? value : *wide, bound, o, c, nullptr, nullptr);
  if (c.bad || (o.flush && c.flushed)) return Brief::open;
  if (rounded) return Brief::agrees;
  const bool empty = how == Judging::ulps ? c.size >= kSmall && static_cast<double>(c.uninformative) > kMost * static_cast<double>(c.size)
                                          : dull(value, *wide, c);
  return empty ? Brief::says_nothing : Brief::agrees;
}

// Position on the line of representable values, both zeros at 0.
std::int64_t ordinal(std::uint64_t raw, std::uint64_t sign) {
  const auto m = static_cast<std::int64_t>(raw & (sign - 1));
  return raw & sign ? -m : m;
}

void ulp_diff(const Tensor& a, const Tensor& b, const Tensor& y) {
  Walk<3> walk({&a, &b, &y});
  Reader ra(a), rb(b);
  const bool ints = is_int(a.dtype);
  const std::uint64_t sign = a.dtype == DType::f8e8m0 ? 0x100 : 1ull << (info(a.dtype).bits - 1);
  const auto width = static_cast<std::size_t>(a.bytes());
  double va[kBlock], vb[kBlock];
  std::int64_t ia[kBlock], ib[kBlock];
  for (Index left = walk.total(); left > 0;) {
    const Index n = std::min({left, kBlock, walk.run()});
    if (ints) {
      ra.next(ia, n);
      rb.next(ib, n);
    } else {
      ra.next(va, n);
      rb.next(vb, n);
    }
    for (Index i = 0; i < n; ++i) {
      double d = 0;
      if (ints) {
        d = static_cast<double>(distance(ia[i], ib[i], is_sint(a.dtype)));
      } else if (va[i] != va[i] || vb[i] != vb[i]) {
        d = va[i] != va[i] && vb[i] != vb[i] ? 0.0 : kInf;
      } else {
        std::uint64_t p = 0, q = 0;
        std::memcpy(&p, walk.ptr(0) + i * walk.step(0), width);
        std::memcpy(&q, walk.ptr(1) + i * walk.step(1), width);
        d = static_cast<double>(distance(ordinal(p, sign), ordinal(q, sign), true));
      }
      std::memcpy(walk.ptr(2) + i * walk.step(2), &d, sizeof d);
    }
    walk.advance(n);
    left -= n;
  }
}

}  // namespace

OPCONFORM_TABLE const CompareTable opconform_compare{sizeof(CompareTable), compare, brief, ulp_diff};

}  // namespace opconform
