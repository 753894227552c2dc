// Functions as polynomials on pieces of their range: half the work of one long polynomial.  Within 2.5 ulp of f64, and
// 5 where gelu falls steeply.
//
// AVX-512: a register pair holds one coefficient of all sixteen pieces, and a permutation picks eight of them.
// AVX2: see pieces_avx2.h.
#pragma once

#include "native_ref/core/simd.h"
#include "native_ref/kernels/elementwise/poly.h"

#if defined(__AVX512F__)
#define OPCONFORM_PIECES
namespace opconform::pieces {

// The coefficients of one power of all pieces side by side.
template <std::size_t N>
struct Table {
  constexpr Table(const double (&c)[N][16], double s) : of(c), step(s), most(15.25 * s) {}
  const double (&of)[N][16];
  double step, most;
};
inline constexpr Table kErf{math::kErfPieces, math::kErfStep};
inline constexpr Table kNormal{math::kNormalPieces, math::kNormalStep};
inline constexpr Table kGeluTanh{math::kGeluTanhPieces, math::kGeluTanhStep};

inline __m512d magnitude(__m512d x) { return _mm512_abs_pd(x); }

// K vectors side by side, which share the loads of coefficients.
template <int K>
struct Row {
  __m512d v[K];
};
template <int K, class F, class... V>
inline Row<K> each(F&& f, const V&... rows) {
  Row<K> r;
  for (int k = 0; k < K; ++k) r.v[k] = f(rows.v[k]...);
  return r;
}

// The polynomials of t at 0 <= a <= t.most, in a less the nearest multiple of the step.  NaN gives NaN.
template <int K, std::size_t N>
inline Row<K> evaluate(const Table<N>& t, const Row<K>& a) {
  const __m512d magic = _mm512_set1_pd(0x1.8p52);  // a / step + magic holds the piece's number in its low bits
  const __m512d width = _mm512_set1_pd(t.step), inverse = _mm512_set1_pd(1.0 / t.step);
  const auto number = each<K>([&](__m512d x) { return _mm512_fmadd_pd(x, inverse, magic); }, a);
  const auto d = each<K>(
      [&](__m512d x, __m512d v) { return _mm512_fnmadd_pd(_mm512_sub_pd(v, magic), width, x); }, a, number);
  const auto pick = [&](const double* of) {
    const __m512d low = _mm512_load_pd(of), high = _mm512_load_pd(of + 8);
    return each<K>([&](__m512d v) { return _mm512_permutex2var_pd(low, _mm512_castpd_si512(v), high); }, number);
  };
  Row<K> y = pick(t.of[N - 1]);
#pragma GCC unroll 16
  for (std::size_t i = N - 1; i > 0; --i)
    y = each<K>([](__m512d v, __m512d x, __m512d w) { return _mm512_fmadd_pd(v, x, w); }, y, d, pick(t.of[i - 1]));
  return y;
}

// x <- f(x), n elements; f takes and gives rows of any number of vectors.
template <class F>
inline void transform(double* x, std::int64_t n, F&& f) {
  constexpr int K = 3;
  std::int64_t i = 0;
  for (; i + 8 * K <= n; i += 8 * K) {
    Row<K> r;
    for (int k = 0; k < K; ++k) r.v[k] = _mm512_loadu_pd(x + i + 8 * k);
    r = f(r);
    for (int k = 0; k < K; ++k) _mm512_storeu_pd(x + i + 8 * k, r.v[k]);
  }
  for (; i < n; i += 8) {
    const auto lanes = static_cast<__mmask8>(n - i < 8 ? (1 << (n - i)) - 1 : 255);
    _mm512_mask_storeu_pd(x + i, lanes, f(Row<1>{{_mm512_maskz_loadu_pd(lanes, x + i)}}).v[0]);
  }
}

inline void erf(double* x, std::int64_t n) {
  const __m512d six = _mm512_set1_pd(6.0), one = _mm512_set1_pd(1.0);
  const __m512i sign = _mm512_castpd_si512(_mm512_set1_pd(-0.0));
  transform(x, n, [&]<int K>(const Row<K>& v) {
    const auto c = each<K>([&](__m512d a) { return _mm512_min_pd(six, magnitude(a)); }, v);  // this order keeps NaN
    const auto y = evaluate(kErf, c);
    return each<K>(
        [&](__m512d t, __m512d a, __m512d share) {
          // 1 to the last place from 6 on
          const __mmask8 far = _mm512_cmp_pd_mask(a, six, _CMP_EQ_OQ);
          const __m512i z = _mm512_castpd_si512(_mm512_mask_mov_pd(_mm512_mul_pd(a, share), far, one));
          return _mm512_castsi512_pd(_mm512_ternarylogic_epi64(sign, _mm512_castpd_si512(t), z, 0xca));
        },
        v, c, y);
  });
}

// Are all |x| small enough for the pieces of ``left_share``?
inline bool within(const double* x, std::int64_t n, double most) {
  __m512d top = _mm512_setzero_pd();
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) top = _mm512_max_pd(magnitude(_mm512_loadu_pd(x + i)), top);  // passes over NaN
  if (i < n) {
    const auto lanes = static_cast<__mmask8>((1 << (n - i)) - 1);
    top = _mm512_max_pd(magnitude(_mm512_maskz_loadu_pd(lanes, x + i)), top);
  }
  return _mm512_cmp_pd_mask(top, _mm512_set1_pd(most), _CMP_GT_OQ) == 0;
}

// x s(x) for a sigmoid with s(x) = 1 - s(-x), given s(-a) for 0 <= a <= t.most.
template <const auto& t>
inline void left_share(double* x, std::int64_t n) {
  const __m512i sign = _mm512_castpd_si512(_mm512_set1_pd(-0.0));
  // below 1/2 by two ulps at least, so that next to 0 the square is not lost, nor in the difference
  const __m512d half = _mm512_set1_pd(0.5 - 0x1p-53), zero = _mm512_setzero_pd();
  transform(x, n, [&]<int K>(const Row<K>& v) {
    const auto a = each<K>(magnitude, v), y = evaluate(t, a);
    return each<K>(
        [&](__m512d from, __m512d size, __m512d share) {
          const __m512d w = _mm512_mul_pd(size, _mm512_min_pd(half, share));
          const __m512d signed_zero = _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(from), sign));
          return _mm512_sub_pd(_mm512_mask_mov_pd(signed_zero, _mm512_cmp_pd_mask(from, zero, _CMP_GT_OQ), from), w);
        },
        v, a, y);
  });
}

}  // namespace opconform::pieces
#elif defined(__AVX2__) && defined(__FMA__)
#define OPCONFORM_PIECES
#define OPCONFORM_PIECES_OF_F32
#include "native_ref/kernels/elementwise/pieces_avx2.h"
#endif
