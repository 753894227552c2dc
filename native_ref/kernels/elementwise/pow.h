// x^y for operands of up to 32 bits, to within a few hundredths of an ulp of f64 before the one rounding: whatever f64 can hold
// comes out exactly, ties of narrower types among them.
//
// The logarithm and its product with y are carried as a number and the rest of it (log(m) = 2 atanh(s), s = (m-1)/(m+1)), of
// the exponential's series everything up to the square is.
#pragma once

#include "native_ref/kernels/elementwise/math.h"

namespace opconform::math {

// a * b = product + what it lost
inline double product(double a, double b, double& lost) {
  const double p = a * b;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  lost = __builtin_fma(a, b, -p);
#else
  const double c = 134217729.0 * a, d = 134217729.0 * b;  // Veltkamp's halves
  const double ah = c - (c - a), bh = d - (d - b), al = a - ah, bl = b - bh;
  lost = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
  return p;
}
// a + b = sum + what it lost, |a| >= |b| or a == 0
inline double ordered_sum(double a, double b, double& lost) {
  const double s = a + b;
  lost = (a - s) + b;
  return s;
}

// log(a), a a normal number of at most 52 bits: returned + rest
inline double log_pair(double a, double& rest) {
  constexpr std::uint64_t root = 0x3fe6a09e667f3bcd;
  constexpr double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b3ap-40;       // ln2
  constexpr double third = 0x1.5555555555555p-1, third_low = 0x1.5555555555555p-55;  // 2/3
  const std::uint64_t shifted = ubits(a) - root + (std::uint64_t{1024} << 52);
  const std::uint64_t field = shifted >> 52;
  const double k = from_bits(field + ubits(kMagic)) - (kMagic + 1024.0);
  const double m = from_bits(ubits(a) - ((field - 1024) << 52));
  const double f = m - 1.0, g = m + 1.0, inverse = 1.0 / g;
  const double s = f * inverse;
  double sg_lost;
  const double sg = product(s, g, sg_lost);
  const double s_low = ((f - sg) - sg_lost) * inverse;
  double z_low;
  const double z = product(s, s, z_low);
  z_low = mad(2.0 * s, s_low, z_low);
  double u_low;
  const double u = ordered_sum(third, z * horner(kLogRest, z), u_low);
  double w_low;
  const double w = product(z, u, w_low);
  w_low += mad(z, u_low + third_low, z_low * u);
  double v_low;
  const double v = product(s, w, v_low);
  v_low += mad(s, w_low, s_low * w);
  double l_low, t_low;
  const double l = ordered_sum(2.0 * s, v, l_low);
  const double t = ordered_sum(k * high, l, t_low);
  rest = t_low + (l_low + (2.0 * s_low + v_low) + k * low);
  return t;
}

// NaN where the general function has to be asked: zeros, infinities, NaN, results next to the ends of f64.
inline double pow(double x, double y) {
  const double a = std::fabs(x);
  double rest, p_low;
  const double l = log_pair(a, rest);
  const double p = product(y, l, p_low);
  p_low = mad(y, rest, p_low);

  constexpr double log2e = 0x1.71547652b82fep+0;
  constexpr double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b3ap-40;
  const double t = mad(p, log2e, kBiased);
  const double k = t - kBiased;
  const double r1 = p - k * high, b = k * low;
  const double r = r1 - b, r_low = ((r1 - r) - b) + p_low;
  const double scale = from_bits(ubits(t) << 52);
  double q_low, sum_low, more_low;
  const double q = product(r, r, q_low);
  const double cube = r * q * horner(kExpRest, r);
  const double sum = ordered_sum(1.0, r, sum_low);
  const double more = ordered_sum(sum, 0.5 * q, more_low);
  const double e = more + ((sum_low + more_low) + mad(r_low, more + cube, mad(0.5, q_low, cube)));

  // A negative x: only with whole y, of which an odd one turns the sign.  What is not fine is added as NaN rather than chosen,
  // which would tempt the compiler to branch around the rest.
  const double bounded = at_most(0x1p51, at_least(-0x1p51, y)), whole = bounded + kMagic;
  const std::uint64_t negative = ubits(x) & (std::uint64_t{1} << 63), turned = negative & (ubits(whole) << 63);
  const double broken = whole - kMagic == y ? 0.0 : kNaN;
  const double unwanted = from_bits(ubits(broken) & (0 - (negative >> 63)));
  const double out = ubits(a) - 1 < ubits(kInfinity) - 1 ? 0.0 : kNaN, far_out = std::fabs(p) < 700.0 ? 0.0 : kNaN;
  return from_bits(ubits(e * scale) ^ turned) + (out + far_out + unwanted);
}

}  // namespace opconform::math
