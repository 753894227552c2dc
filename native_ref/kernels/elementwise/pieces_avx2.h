// The pieces of pieces.h in vectors of four, which cannot look coefficients up in registers.  They are cut into shorter
// ones, each with its coefficients side by side, and every element goes through its own in four chains, of every fourth
// power.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "native_ref/core/simd.h"
#include "native_ref/core/tensor.h"

namespace opconform::pieces {

// Row i: a polynomial in d = x - first - i step, up to step / 2 to either side.
//   8 terms: c0 ... c7, for (c0 + c4 d^4) + d (c1 + c5 d^4) + ...
//   7 terms: c0 c1 c2 c3, 0 c4 c5 c6, for c0 + d (c1 + c4 d^3) + ..., which saves a rounding next to c0
struct Table {
  static constexpr std::size_t kRows = 256;  // a power of 2, so that any number is that of a row after a mask
  std::size_t terms;
  double step, first, most;  // the step is a power of 2
  bool nan;                  // left_share: does a NaN keep its sign, as it does in the function's f?
  alignas(64) double of[kRows][8];
};

// p[0 ... n-1] in x becomes p in x - by.
constexpr void move_to(long double* p, std::size_t n, long double by) {
  for (std::size_t i = 0; i + 1 < n; ++i)
    for (std::size_t k = n - 1; k > i; --k) p[k - 1] += by * p[k];
}
// The last of n terms spread over the lower ones, as well as can be within -most ... most: less the Chebyshev
// polynomial of its degree.
constexpr void drop_last(long double* p, std::size_t n, long double most) {
  const std::size_t degree = n - 1;
  long double term = p[degree];
  for (std::size_t k = 1; 2 * k <= degree; ++k) {
    const std::size_t at = degree - 2 * k, up = (at + 2) * (at + 1), down = 4 * k * (degree - k);
    term *= -most * most * static_cast<long double>(up) / static_cast<long double>(down);
    p[at] -= term;
  }
}
// Every piece of c cut into step / finer pieces, none of which is to lie on two of c.  lost: by c[0] in rounding.
template <std::size_t N>
constexpr Table cut(std::size_t terms, const double (&c)[N][16], const double (&lost)[16], double step, double finer) {
  Table t{};
  t.terms = terms;
  t.step = finer;
  t.first = static_cast<int>(step / finer) % 2 ? 0.0 : finer / 2;
  t.most = 15.25 * step;
  for (std::size_t i = 0; i < Table::kRows; ++i) {
    const double middle = t.first + static_cast<double>(i) * finer;
    const auto piece = static_cast<std::size_t>(middle / step + 0.5);
    if (piece > 15) break;
    long double p[N]{};
    for (std::size_t k = 0; k < N; ++k) p[k] = c[k][piece];
    p[0] += lost[piece];
    move_to(p, N, middle - static_cast<double>(piece) * step);
    for (std::size_t n = N; n > terms; --n) drop_last(p, n, finer / 2);
    for (std::size_t k = 0; k < terms; ++k) t.of[i][k < 4 ? k : k + 8 - terms] = static_cast<double>(p[k]);
  }
  return t;
}
constexpr Table up_to(double most, Table t) {
  t.most = most;
  return t;
}
constexpr Table with_nan(Table t) {
  t.nan = true;
  return t;
}
inline constexpr Table kErf = cut(7, math::kErfPieces, math::kErfLost, math::kErfStep, 0x1p-5);
inline constexpr Table kNormal = cut(8, math::kNormalPieces, math::kNormalLost, math::kNormalStep, 0x1p-5);
// farther out it falls too steeply for eight terms
inline constexpr Table kGeluTanh =
    with_nan(up_to(4.4375, cut(8, math::kGeluTanhPieces, math::kGeluTanhLost, math::kGeluTanhStep, 0x1p-5)));

inline __m256d magnitude(__m256d x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }

// What evaluate() needs of the elements of a few vectors.
inline constexpr Index kSome = 64;
struct Places {
  alignas(32) double d[kSome], power[kSome];  // the power that goes with the second half of a row
  alignas(32) std::int64_t row[kSome];        // where the row begins
};
// For 0 <= a <= t.most.
template <const Table& t>
inline void locate(__m256d a, Places& p, Index i) {
  const __m256d magic = _mm256_set1_pd(0x1.8p52 * t.step);  // a + magic holds the row's number in its low bits
  const __m256d from = t.first > 0 ? _mm256_sub_pd(a, _mm256_set1_pd(t.first)) : a;
  const __m256d number = _mm256_add_pd(from, magic);
  const __m256d d = _mm256_sub_pd(from, _mm256_sub_pd(number, magic)), z = _mm256_mul_pd(d, d);
  const __m256i row = _mm256_slli_epi64(_mm256_castpd_si256(number), 3);
  _mm256_store_pd(p.d + i, d);
  _mm256_store_pd(p.power + i, _mm256_mul_pd(z, t.terms == 7 ? d : z));
  _mm256_store_si256(reinterpret_cast<__m256i*>(p.row + i),
                     _mm256_and_si256(row, _mm256_set1_epi64x((Table::kRows - 1) << 3)));
}
// The polynomials of t.  NaN gives NaN.
template <const Table& t>
inline __m256d evaluate(const Places& p, Index i) {
  const auto chains = [&](Index k) {
    const double* c = t.of[0] + p.row[i + k];
    return _mm256_fmadd_pd(_mm256_load_pd(c + 4), _mm256_broadcast_sd(p.power + i + k), _mm256_load_pd(c));
  };
  const __m256d r0 = chains(0), r1 = chains(1), r2 = chains(2), r3 = chains(3), d = _mm256_load_pd(p.d + i);
  const __m256d even01 = _mm256_unpacklo_pd(r0, r1), odd01 = _mm256_unpackhi_pd(r0, r1);
  const __m256d even23 = _mm256_unpacklo_pd(r2, r3), odd23 = _mm256_unpackhi_pd(r2, r3);
  __m256d y = _mm256_permute2f128_pd(odd01, odd23, 0x31);
  y = _mm256_fmadd_pd(y, d, _mm256_permute2f128_pd(even01, even23, 0x31));
  y = _mm256_fmadd_pd(y, d, _mm256_permute2f128_pd(odd01, odd23, 0x20));
  return _mm256_fmadd_pd(y, d, _mm256_permute2f128_pd(even01, even23, 0x20));
}

inline __m256d read(const double* p) { return _mm256_loadu_pd(p); }
inline __m256d read(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
inline void write(double* p, __m256d v) { _mm256_storeu_pd(p, v); }
inline void write(float* p, __m256d v) { _mm_storeu_ps(p, _mm256_cvtpd_ps(v)); }

// y <- f(x, a, t(a)) for a = size(x), n elements; x and y may be the same.  Vectors wait long for the place of their
// coefficients, hence many of them at a time.
template <const Table& t, class T, class Size, class F>
inline void transform(const T* x, T* y, Index n, Size size, F f) {
  Places p;
  alignas(32) T rest[4]{};
  while (n > 0) {
    const T* from = x;
    T* to = y;
    Index some = std::min(n, kSome) & ~Index{3};
    if (some == 0) {
      std::copy(x, x + n, rest);
      from = to = rest;
      some = 4;
    }
    for (Index i = 0; i < some; i += 4) locate<t>(size(read(from + i)), p, i);
    for (Index i = 0; i < some; i += 4) {
      const __m256d v = read(from + i);
      write(to + i, f(v, size(v), evaluate<t>(p, i)));
    }
    if (from == rest) {
      std::copy(rest, rest + n, y);
      return;
    }
    n -= some;
    x += some;
    y += some;
  }
}

template <class T>
inline void erf(const T* x, T* y, Index n) {
  const __m256d six = _mm256_set1_pd(6.0), one = _mm256_set1_pd(1.0), sign = _mm256_set1_pd(-0.0);
  const auto size = [=](__m256d v) { return _mm256_min_pd(six, magnitude(v)); };  // this order keeps NaN
  transform<kErf>(x, y, n, size, [=](__m256d v, __m256d a, __m256d share) {
    // 1 to the last place from 6 on
    const __m256d y = _mm256_blendv_pd(_mm256_mul_pd(a, share), one, _mm256_cmp_pd(a, six, _CMP_EQ_OQ));
    return _mm256_or_pd(_mm256_and_pd(sign, v), y);
  });
}
inline void erf(double* x, Index n) { erf(x, x, n); }

// Are all |x| small enough for the pieces of ``left_share``?
inline bool within(const double* x, Index n, double most) {
  __m256d top = _mm256_setzero_pd();
  Index i = 0;
  for (; i + 4 <= n; i += 4) top = _mm256_max_pd(magnitude(read(x + i)), top);  // passes over NaN
  bool fine = _mm256_movemask_pd(_mm256_cmp_pd(top, _mm256_set1_pd(most), _CMP_GT_OQ)) == 0;
  for (; i < n; ++i) fine = fine && !(x[i] > most || x[i] < -most);
  return fine;
}
inline bool within(const float* x, Index n, double most) {
  const auto limit = static_cast<float>(most);  // a number of few bits
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 top = _mm256_setzero_ps();
  Index i = 0;
  for (; i + 8 <= n; i += 8) top = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + i)), top);
  bool fine = _mm256_movemask_ps(_mm256_cmp_ps(top, _mm256_set1_ps(limit), _CMP_GT_OQ)) == 0;
  for (; i < n; ++i) fine = fine && !(x[i] > limit || x[i] < -limit);
  return fine;
}

// x s(x) for a sigmoid with s(x) = 1 - s(-x), given s(-a) for 0 <= a <= t.most.
template <const Table& t, class T>
inline void left_share(const T* x, T* y, Index n) {
  const __m256d sign = _mm256_set1_pd(-0.0), zero = _mm256_setzero_pd();
  // below 1/2 by two ulps at least, so that next to 0 the square is not lost, nor in the difference
  const __m256d half = _mm256_set1_pd(0.5 - 0x1p-53);
  transform<t>(x, y, n, [](__m256d v) { return magnitude(v); }, [=](__m256d v, __m256d a, __m256d share) {
    const __m256d w = _mm256_mul_pd(a, _mm256_min_pd(half, share));
    // of two zeros, and with a NaN, the second one
    const __m256d right = t.nan ? _mm256_max_pd(zero, v) : _mm256_max_pd(v, _mm256_and_pd(sign, v));
    return _mm256_sub_pd(right, w);
  });
}
template <const Table& t>
inline void left_share(double* x, Index n) {
  left_share<t>(x, x, n);
}

}  // namespace opconform::pieces
