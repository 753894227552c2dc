// Register tiles of the packed matrix product, written with vector extensions so that one text serves every
// instruction set.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include "native_ref/core/simd.h"
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace opconform::gemm {

template <class T>
struct VecOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef T loose __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vec = typename VecOf<T>::type;
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
inline Vec<T> load(const T* p) {
  return *reinterpret_cast<const typename VecOf<T>::loose*>(p);
}
template <class T>
inline void store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VecOf<T>::loose*>(p) = v;
}

// A vector of T from elements of another type.
template <class T, class B>
inline Vec<T> load_as(const B* p) {
  if constexpr (std::is_same_v<T, B>) {
    return load(p);
  } else {
#if defined(__AVX512F__)  // which GCC 12 makes of halves otherwise
    if constexpr (std::is_same_v<T, double> && std::is_same_v<B, float>)
      return (Vec<T>)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(__AVX2__)
    if constexpr (std::is_same_v<T, double> && std::is_same_v<B, float>)
      return (Vec<T>)_mm256_cvtps_pd(_mm_loadu_ps(p));
#endif
    typedef B Narrow __attribute__((vector_size(kLanes<T> * sizeof(B))));
    Narrow v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, Vec<T>);
  }
}

// Rows and vectors of a tile: as many accumulators as registers allow beside the operands (measured, research notes).
template <class T>
struct Shape {
#if defined(__AVX512F__) || defined(__aarch64__)
  static constexpr int rows = 8, vecs = 3;
#elif defined(__AVX2__)
  static constexpr int rows = 4, vecs = 3;
#else
  static constexpr int rows = 4, vecs = 2;
#endif
};
struct Dot2Shape {
#if defined(__AVX512F__) || defined(__aarch64__)
  static constexpr int rows = 4, vecs = 2;
#else
  static constexpr int rows = 2, vecs = 2;
#endif
};

// a * b + c, fused where the machine can: spelled out, since contraction is switched off for the whole library.
template <class T>
inline Vec<T> multiply_add(Vec<T> a, Vec<T> b, Vec<T> c) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, double>) return (Vec<T>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
  if constexpr (std::is_same_v<T, float>) return (Vec<T>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
  if constexpr (std::is_same_v<T, double>) return (Vec<T>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  if constexpr (std::is_same_v<T, float>) return (Vec<T>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
  if constexpr (std::is_same_v<T, double>) return (Vec<T>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
  if constexpr (std::is_same_v<T, float>) return (Vec<T>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#endif
  return c + a * b;
}

inline double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return c + a * b;
#endif
}

// out[i * ldc + j] (+)= sum over k of a[i * lda + k] * b[k][j] for i < R, j < NV vectors; k in order, so every tile shape
// gives the same bits.
template <class T, int R, int NV, bool Add>
[[gnu::always_inline]] inline void multiply_tile(std::int64_t kc, const T* a, std::int64_t lda, const T* b, T* out,
                                                 std::int64_t ldc) {
  using V = Vec<T>;
  V acc[R][NV] = {};
  for (std::int64_t k = 0; k < kc; ++k, ++a, b += NV * kLanes<T>) {
    V bv[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) bv[j] = load(b + j * kLanes<T>);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const V av = a[i * lda] - V{};  // a broadcast: "V{} + x" would be an addition and turn -0 into +0
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) acc[i][j] = multiply_add<T>(av, bv[j], acc[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) {
      T* o = out + i * ldc + j * kLanes<T>;
      store(o, Add ? load(o) + acc[i][j] : acc[i][j]);
    }
}

// x * y - p without rounding in between.
inline Vec<double> product_error(Vec<double> x, Vec<double> y, Vec<double> p) {
#if defined(__AVX512F__)
  return (Vec<double>)_mm512_fmsub_pd((__m512d)x, (__m512d)y, (__m512d)p);
#elif defined(__AVX2__) && defined(__FMA__)
  return (Vec<double>)_mm256_fmsub_pd((__m256d)x, (__m256d)y, (__m256d)p);
#elif defined(__aarch64__)
  return (Vec<double>)vfmaq_f64(vnegq_f64((float64x2_t)p), (float64x2_t)x, (float64x2_t)y);
#else  // Veltkamp's splitting; overflow beyond 2^996 shows as NaN and is caught by the caller
  const Vec<double> f = 134217729.0 - Vec<double>{};
  const Vec<double> cx = f * x, cy = f * y;
  const Vec<double> xh = cx - (cx - x), yh = cy - (cy - y), xl = x - xh, yl = y - yh;
  return ((xh * yh - p) + xh * yl + xl * yh) + xl * yl;
#endif
}

// Dot2 (Ogita, Rump, Oishi 2005): as if computed in twice the precision; hi and lo parts of every sum.
template <int R, int NV>
inline void dot2_tile(std::int64_t kc, const double* a, std::int64_t a_step, const double* b, double* hi, double* lo) {
  using V = Vec<double>;
  constexpr int L = kLanes<double>;
  V s[R][NV] = {}, c[R][NV] = {};
  for (std::int64_t k = 0; k < kc; ++k, a += a_step, b += NV * L) {
    V bv[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) bv[j] = load(b + j * L);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      const V av = a[i] - V{};
#pragma GCC unroll 4
      for (int j = 0; j < NV; ++j) {
        const V p = av * bv[j];
        const V e = product_error(av, bv[j], p);
        const V t = s[i][j] + p;
        const V z = t - s[i][j];
        c[i][j] += ((s[i][j] - (t - z)) + (p - z)) + e;
        s[i][j] = t;
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < NV; ++j) {
      store(hi + (i * NV + j) * L, s[i][j]);
      store(lo + (i * NV + j) * L, c[i][j]);
    }
}

}  // namespace opconform::gemm
