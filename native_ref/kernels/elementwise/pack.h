// A few vectors of f64 as one number of the templates of math.h: the operations on double, in the same order, but step
// by step for all of them, so that none waits for its own last step.
#pragma once

#include "native_ref/core/simd.h"
#include "native_ref/core/tensor.h"
#include "native_ref/kernels/elementwise/math.h"

#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)
#define OPCONFORM_PACKS
namespace opconform::math {

struct Pack {
  static constexpr Index size = 16;
  __m256d a, b, c, d;
  Pack() = default;
  Pack(__m256d u, __m256d v, __m256d w, __m256d x) : a(u), b(v), c(w), d(x) {}
  Pack(double x) : a(_mm256_set1_pd(x)), b(a), c(a), d(a) {}
};
template <class F, class... P>
[[gnu::always_inline]] inline Pack each(const F& f, const P&... p) {
  return {f(p.a...), f(p.b...), f(p.c...), f(p.d...)};
}
inline Pack operator+(const Pack& p, const Pack& q) {
  return each([](auto x, auto y) { return _mm256_add_pd(x, y); }, p, q);
}
inline Pack operator-(const Pack& p, const Pack& q) {
  return each([](auto x, auto y) { return _mm256_sub_pd(x, y); }, p, q);
}
inline Pack operator*(const Pack& p, const Pack& q) {
  return each([](auto x, auto y) { return _mm256_mul_pd(x, y); }, p, q);
}
inline Pack operator/(const Pack& p, const Pack& q) {
  return each([](auto x, auto y) { return _mm256_div_pd(x, y); }, p, q);
}
inline Pack& operator+=(Pack& p, const Pack& q) { return p = p + q; }
inline Pack operator-(const Pack& p) {
  return each([](auto x) { return _mm256_xor_pd(x, _mm256_set1_pd(-0.0)); }, p);
}
inline Pack mad(const Pack& p, const Pack& q, const Pack& r) {
  return each([](auto x, auto y, auto z) { return _mm256_fmadd_pd(x, y, z); }, p, q, r);
}
inline Pack less(const Pack& r, const Pack& p, const Pack& q) {
  return each([](auto z, auto x, auto y) { return _mm256_fnmadd_pd(x, y, z); }, r, p, q);
}
inline Pack at_most(const Pack& p, const Pack& q) {
  return each([](auto x, auto y) { return _mm256_min_pd(x, y); }, p, q);
}
inline Pack at_least(const Pack& p, const Pack& q) {
  return each([](auto x, auto y) { return _mm256_max_pd(x, y); }, p, q);
}
inline Pack magnitude(const Pack& p) {
  return each([](auto x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }, p);
}
inline Pack with_sign(const Pack& a, const Pack& of) {
  const __m256d sign = _mm256_set1_pd(-0.0);
  return each([=](auto x, auto s) { return _mm256_or_pd(_mm256_andnot_pd(sign, x), _mm256_and_pd(sign, s)); }, a, of);
}
// A mask: all bits of an element or none.
inline Pack above(const Pack& a, const Pack& b) {
  return each([](auto x, auto y) { return _mm256_cmp_pd(x, y, _CMP_GT_OQ); }, a, b);
}
inline Pack choose(const Pack& which, const Pack& a, const Pack& b) {
  return each([](auto m, auto x, auto y) { return _mm256_blendv_pd(y, x, m); }, which, a, b);
}
inline Pack exponent(const Pack& a) {
  return each([](auto x) { return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(x), 52)); }, a);
}

inline Pack exp(const Pack& x) { return exponential(x); }
inline Pack atan(const Pack& x) { return arctangent(x); }
inline Pack tanh(const Pack& x) { return tangent(x); }

inline bool any_nan(const Pack& p) {  // of two vectors at a time
  const auto either = [](__m256d x, __m256d y) { return _mm256_cmp_pd(x, y, _CMP_UNORD_Q); };
  return _mm256_movemask_pd(_mm256_or_pd(either(p.a, p.b), either(p.c, p.d))) != 0;
}
inline Pack read(const float* x) {
  const auto in = [=](int k) { return _mm256_cvtps_pd(_mm_loadu_ps(x + k)); };
  return {in(0), in(4), in(8), in(12)};
}
inline void write(float* y, const Pack& p) {
  const auto out = [=](int k, __m256d v) { _mm_storeu_ps(y + k, _mm256_cvtpd_ps(v)); };
  out(0, p.a), out(4, p.b), out(8, p.c), out(12, p.d);
}
// y <- f(x) for whole packs; how many elements that were.
template <class F>
inline Index packs(const float* x, float* y, Index n, const F& f) {
  Index i = 0;
  for (; i + Pack::size <= n; i += Pack::size) {
    write(y + i, f(read(x + i)));
  }
  return i;
}

}  // namespace opconform::math
#endif
