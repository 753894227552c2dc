// x^y for operands of up to 32 bits, to within a few hundredths of an ulp of f64 before the one rounding: whatever f64 can hold
// comes out exactly, ties of narrower types among them.
//
// The logarithm and its product with y are carried as a number and the rest of it (log(m) = 2 atanh(s), s = (m-1)/(m+1)), of
// the exponential's series everything up to the square is.
#pragma once

#include "native_ref/kernels/elementwise/math.h"
#include "native_ref/kernels/elementwise/pack.h"

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
#if defined(OPCONFORM_PACKS)
inline Pack product(const Pack& a, const Pack& b, Pack& lost) {
  const Pack p = a * b;
  lost = each([](auto x, auto y, auto z) { return _mm256_fmsub_pd(x, y, z); }, a, b, p);
  return p;
}
#endif
// a = 2^k m, sqrt(1/2) <= m < sqrt(2)
inline double parts(double a, double& k) {
  constexpr std::uint64_t root = 0x3fe6a09e667f3bcd;
  const std::uint64_t shifted = ubits(a) - root + (std::uint64_t{1024} << 52);
  const std::uint64_t field = shifted >> 52;
  k = from_bits(field + ubits(kMagic)) - (kMagic + 1024.0);
  return from_bits(ubits(a) - ((field - 1024) << 52));
}
#if defined(OPCONFORM_PACKS)
inline Pack parts(const Pack& a, Pack& k) {
  const __m256i root = _mm256_set1_epi64x(0x3fe6a09e667f3bcd - (std::int64_t{1024} << 52));
  const __m256i magic = _mm256_castpd_si256(_mm256_set1_pd(kMagic)), bias = _mm256_set1_epi64x(1024);
  const Pack field = each([=](auto x) {
    return _mm256_castsi256_pd(_mm256_srli_epi64(_mm256_sub_epi64(_mm256_castpd_si256(x), root), 52));
  }, a);
  k = each([=](auto f) { return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(f), magic)); }, field) -
      (kMagic + 1024.0);
  return each([=](auto x, auto f) {
    const __m256i by = _mm256_slli_epi64(_mm256_sub_epi64(_mm256_castpd_si256(f), bias), 52);
    return _mm256_castsi256_pd(_mm256_sub_epi64(_mm256_castpd_si256(x), by));
  }, a, field);
}
#endif
// a + b = sum + what it lost, |a| >= |b| or a == 0
template <class T>
inline T ordered_sum(T a, T b, T& lost) {
  const T s = a + b;
  lost = (a - s) + b;
  return s;
}

// log(a), a a normal number of at most 52 bits: returned + rest
template <class T>
inline T log_pair(T a, T& rest) {
  constexpr double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b3ap-40;       // ln2
  constexpr double third = 0x1.5555555555555p-1, third_low = 0x1.5555555555555p-55;  // 2/3
  T k;
  const T m = parts(a, k);
  const T f = m - 1.0, g = m + 1.0, inverse = 1.0 / g;
  const T s = f * inverse;
  T sg_lost;
  const T sg = product(s, g, sg_lost);
  const T s_low = ((f - sg) - sg_lost) * inverse;
  T z_low;
  const T z = product(s, s, z_low);
  z_low = mad(T(2.0) * s, s_low, z_low);
  T u_low;
  const T u = ordered_sum<T>(third, z * horner(kLogRest, z), u_low);
  T w_low;
  const T w = product(z, u, w_low);
  w_low += mad(z, u_low + third_low, z_low * u);
  T v_low;
  const T v = product(s, w, v_low);
  v_low += mad(s, w_low, s_low * w);
  T l_low, t_low;
  const T l = ordered_sum<T>(2.0 * s, v, l_low);
  const T t = ordered_sum<T>(k * high, l, t_low);
  rest = t_low + (l_low + (2.0 * s_low + v_low) + k * low);
  return t;
}

// v, of the sign that x^y has, and NaN where the general function has to be asked.  A negative x: only with whole y, of
// which an odd one turns the sign.  a = |x|, p = y log(a).  What is not fine is added as NaN rather than chosen, which
// would tempt the compiler to branch around the rest.
inline double fine_power(double x, double y, double a, double p, double v) {
  const double bounded = at_most(0x1p51, at_least(-0x1p51, y)), whole = bounded + kMagic;
  const std::uint64_t negative = ubits(x) & (std::uint64_t{1} << 63), turned = negative & (ubits(whole) << 63);
  const double broken = whole - kMagic == y ? 0.0 : kNaN;
  const double unwanted = from_bits(ubits(broken) & (0 - (negative >> 63)));
  const double out = ubits(a) - 1 < ubits(kInfinity) - 1 ? 0.0 : kNaN, far_out = std::fabs(p) < 700.0 ? 0.0 : kNaN;
  return from_bits(ubits(v) ^ turned) + (out + far_out + unwanted);
}
#if defined(OPCONFORM_PACKS)
inline Pack fine_power(const Pack& x, const Pack& y, const Pack& a, const Pack& p, const Pack& v) {
  const Pack whole = at_most(0x1p51, at_least(-0x1p51, y)) + kMagic, back = whole - kMagic;
  const __m256d nan = _mm256_set1_pd(kNaN), sign = _mm256_set1_pd(-0.0);
  const Pack signed_v = each([=](auto u, auto w, auto z) {
    const __m256d odd = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(w), 63));
    return _mm256_xor_pd(u, _mm256_and_pd(_mm256_and_pd(z, sign), odd));
  }, v, whole, x);
  const Pack broken = each([=](auto w, auto t, auto z) {  // the sign of x stands for the rest of its bits
    return _mm256_blendv_pd(_mm256_setzero_pd(), _mm256_cmp_pd(w, t, _CMP_NEQ_UQ), z);
  }, back, y, x);
  const Pack bad = each([=](auto b, auto u, auto t) {
    const __m256d out = _mm256_or_pd(_mm256_cmp_pd(u, _mm256_setzero_pd(), _CMP_NGT_UQ),
                                     _mm256_cmp_pd(u, _mm256_set1_pd(kInfinity), _CMP_NLT_UQ));
    const __m256d far_out = _mm256_cmp_pd(_mm256_andnot_pd(sign, t), _mm256_set1_pd(700.0), _CMP_NLT_UQ);
    return _mm256_and_pd(nan, _mm256_or_pd(b, _mm256_or_pd(out, far_out)));
  }, broken, a, p);
  return signed_v + bad;
}
#endif

// NaN where the general function has to be asked: zeros, infinities, NaN, results next to the ends of f64.
template <class T>
inline T power(T x, T y) {
  const T a = magnitude(x);
  T rest, p_low;
  const T l = log_pair(a, rest);
  const T p = product(y, l, p_low);
  p_low = mad(y, rest, p_low);

  constexpr double log2e = 0x1.71547652b82fep+0;
  constexpr double high = 0x1.62e42fefap-1, low = 0x1.cf79abc9e3b3ap-40;
  const T t = mad(p, log2e, kBiased);
  const T k = t - kBiased;
  const T r1 = p - k * high, b = k * low;
  const T r = r1 - b, r_low = ((r1 - r) - b) + p_low;
  const T scale = exponent(t);
  T q_low, sum_low, more_low;
  const T q = product(r, r, q_low);
  const T cube = r * q * horner(kExpRest, r);
  const T sum = ordered_sum<T>(1.0, r, sum_low);
  const T more = ordered_sum<T>(sum, 0.5 * q, more_low);
  const T e = more + ((sum_low + more_low) + mad(r_low, more + cube, mad(T(0.5), q_low, cube)));
  return fine_power(x, y, a, p, e * scale);
}
inline double pow(double x, double y) { return power(x, y); }
#if defined(OPCONFORM_PACKS)
inline Pack pow(const Pack& x, const Pack& y) { return power(x, y); }
#endif

}  // namespace opconform::math
