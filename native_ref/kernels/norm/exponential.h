// exp for values that are summed and rounded again: below one ulp in f64, plain loops of it vectorise.
#pragma once

#include <bit>
#include <cstdint>

#include "native_ref/core/simd.h"

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

// The same on eight at once, same operations in the same order.
typedef double Eight __attribute__((vector_size(64)));
typedef std::int64_t EightBits __attribute__((vector_size(64)));

inline Eight exponential(Eight x) {
  const auto pick = [](EightBits mask, Eight a, Eight b) {
    return reinterpret_cast<Eight>((mask & reinterpret_cast<EightBits>(a)) | (~mask & reinterpret_cast<EightBits>(b)));
  };
  const Eight y = pick(x < -750.0, -750.0 - Eight{}, x);
  constexpr double shift = 0x1.8p52;
  const Eight z = y * 0x1.71547652b82fep0 + shift;
  const Eight k = z - shift;
  const Eight r = (y - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  Eight p = 1.0 / 6227020800 - Eight{};
  for (const double c : {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,
                         1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5})
    p = p * r + c;
  const Eight e = 1.0 + (r + r * r * p);  // NaN stays NaN whatever it is scaled by
#if defined(__AVX512F__)
  return reinterpret_cast<Eight>(_mm512_scalef_pd(reinterpret_cast<__m512d>(e), reinterpret_cast<__m512d>(k)));
#else
  const EightBits n = (reinterpret_cast<EightBits>(z) << 13) >> 13, half = n >> 1;
  const Eight a = reinterpret_cast<Eight>((half + 1023) << 52), b = reinterpret_cast<Eight>((n - half + 1023) << 52);
  return e * a * b;
#endif
}

}  // namespace opconform
