// exp for values that are summed and rounded again: below one ulp in f64, plain loops of it vectorise.
#pragma once

#include <bit>
#include <cstdint>

#include "native_ref/core/eight.h"

namespace opconform {

// x <= 709; far below zero gives 0 through the gradual range, NaN stays, -inf gives 0.
inline double exponential(double x) {
  const double y = x < -750 ? -750 : x;
  constexpr double shift = 0x1.8p52;
  const double z = y * 0x1.71547652b82fep0 + shift;  // the nearest whole number sits in the low bits
  const double k = z - shift;
  // log 2 in two parts, the first short enough for k * hi to be exact
  const double r = (y - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  const double e = 1.0 + (r + r * r * p);
  // 2^k in two factors, so that k down to -1082 passes through the subnormals
  const auto n = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(z) << 13) >> 13;  // low 51 bits, signed
  const std::int64_t half = n >> 1;
  const double a = std::bit_cast<double>(static_cast<std::uint64_t>(half + 1023) << 52);
  const double b = std::bit_cast<double>(static_cast<std::uint64_t>(n - half + 1023) << 52);
  return x == x ? e * a * b : x;
}

// The same of eight or more, same operations in the same order.  Step by step, so that vectors do not wait in turn.
template <class V>
[[gnu::always_inline]] inline V exponential(V x) {
  static constexpr double shift = 0x1.8p52;
  const V y = Greater{}(all<V>(-750.0), x);
  const V z = each([](auto v) { return v * 0x1.71547652b82fep0 + shift; }, y);
  const V k = each([](auto v) { return v - shift; }, z);
  const V r = each([](auto v, auto w) { return (v - w * 0x1.62e42fee00000p-1) - w * 0x1.a39ef35793c76p-33; }, y, k);
  V p = all<V>(1.0 / 6227020800);
  for (const double c : {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                         1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5})
    p = each([c](auto v, auto w) { return v * w + c; }, p, r);
  // NaN stays NaN whatever it is scaled by
  const V e = each([](auto v, auto w) { return 1.0 + (w + w * w * v); }, p, r);
#if defined(__AVX512F__)
  return each([]<class N>(N v, N w) { return (N)_mm512_scalef_pd((__m512d)v, (__m512d)w); }, e, k);
#else
  return each(
      []<class N>(N v, N w) {
        typedef std::uint64_t Bits __attribute__((vector_size(sizeof(N))));
        // k + 2048, which is positive: few machines shift signed numbers of 64 bits to the right
        const Bits n = reinterpret_cast<Bits>(w) - (std::bit_cast<std::uint64_t>(shift) - 2048), half = n >> 1;
        return v * reinterpret_cast<N>((half - 1) << 52) * reinterpret_cast<N>((n - half - 1) << 52);
      },
      e, z);
#endif
}

}  // namespace opconform
