#include "native_ref/kernels/quantise/quantise.h"

#include <algorithm>
#include <cmath>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"

namespace opconform {
namespace {

// A positive real as m * 2^(e - 31), m in [2^30, 2^31).  What is below 2^-32 counts as zero, and so does what has no such
// form: what is not positive, an infinity and NaN.
struct Split {
  std::int64_t m = 0;
  int e = 0;
  explicit Split(double scale) {
    if (!(scale > 0) || std::isinf(scale)) return;
    m = static_cast<std::int64_t>(std::floor(std::frexp(scale, &e) * 0x1p31 + 0.5));
    if (m == std::int64_t{1} << 31) m >>= 1, ++e;
    if (e < -31) m = e = 0;
  }
};

struct Multiplier {
  std::int64_t m = 0;
  int left = 0, right = 0;
  explicit Multiplier(double scale) {
    const Split s(scale);
    m = s.m;
    left = std::min(std::max(s.e, 0), 31);
    right = std::max(-s.e, 0);
  }
};

std::int64_t scaled(std::int64_t acc, const Multiplier& by) {
  constexpr std::int64_t low = -(std::int64_t{1} << 31), high = (std::int64_t{1} << 31) - 1;
  // bounded first, so that the shift cannot overflow; the product is below 2^62
  const std::int64_t wide = std::clamp(std::clamp(acc, low, high) * (std::int64_t{1} << by.left), low, high);
  const std::int64_t p = wide * by.m, s = p + (p >= 0 ? std::int64_t{1} << 30 : 1 - (std::int64_t{1} << 30));
  const std::int64_t h = s / (std::int64_t{1} << 31);  // toward zero
  const std::int64_t mask = (std::int64_t{1} << by.right) - 1, rest = h & mask;
  return (h >> by.right) + (rest > (mask >> 1) + (h < 0) ? 1 : 0);
}

// The 64-bit accumulators of 16-bit activations: the multiplier's upper half, one rounding (ties up).
std::int64_t scaled_wide(std::int64_t acc, double scale) {
  const Split by(scale);
  const std::int64_t reduced = by.m < 0x7fff0000 ? (by.m + (1 << 15)) >> 16 : 0x7fff;
  const int shift = std::clamp(15 - by.e, 1, 62);
  // wraps like the 64-bit registers it stands for
  const std::uint64_t p = static_cast<std::uint64_t>(acc) * static_cast<std::uint64_t>(reduced);
  return static_cast<std::int64_t>(p + (1ull << (shift - 1))) >> shift;
}

void requantise(const Tensor& acc, const Tensor& scale, const Requantise& q, const Tensor& out) {
  Reader a(acc), b(scale);
  Writer to(out);
  std::int64_t x[kBlock];
  double s[kBlock];
  double last = 1;
  Multiplier by(last);
  for (Index left = out.size(); left > 0; left -= kBlock) {
    const Index n = std::min(left, kBlock);
    a.next(x, n);
    b.next(s, n);
    for (Index i = 0; i < n; ++i) {
      if (q.wide) {
        x[i] = scaled_wide(x[i], s[i]);
      } else {
        if (s[i] != last) by = Multiplier(last = s[i]);
        x[i] = scaled(x[i], by);
      }
      x[i] = std::clamp(static_cast<std::int64_t>(static_cast<std::uint64_t>(x[i]) + static_cast<std::uint64_t>(q.zero)), q.low,
                        q.high);
    }
    to.next(x, n);
  }
}

void centre(const Tensor& x, const Tensor& zero, const Tensor& out) {
  Reader a(x), b(zero);
  Writer to(out);
  std::int64_t u[kBlock], v[kBlock];
  for (Index left = out.size(); left > 0; left -= kBlock) {
    const Index n = std::min(left, kBlock);
    a.next(u, n);
    b.next(v, n);
    for (Index i = 0; i < n; ++i) u[i] -= v[i];
    to.next(u, n);
  }
}

}  // namespace

OPCONFORM_TABLE const QuantiseTable opconform_quantise{sizeof(QuantiseTable), centre, requantise};

}  // namespace opconform
