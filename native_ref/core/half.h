// f16 and bf16 in rows: the same results as encode and decode of float_format.h, many at a time.
//
// Up: through f32, which holds both formats exactly.  Down: rounded in f64 to the format's own spacing, so that the steps to
// f32 and from there are exact.  NaNs come out as one pattern with their sign.
#pragma once

#include <cstring>

#include "native_ref/core/float_format.h"
#include "native_ref/core/simd.h"
#include "native_ref/core/tensor.h"
namespace opconform::half {

inline constexpr Index kChunk = 64;

inline double one_nan(double v) { return v != v ? std::copysign(std::numeric_limits<double>::quiet_NaN(), v) : v; }
inline float one_nan(float v) { return v != v ? std::copysign(std::numeric_limits<float>::quiet_NaN(), v) : v; }

// v rounded to F as f32: what overflows in F is 2^128 (bf16, inf in f32) or 65536 (f16).
template <class F>
inline float rounded(double v) {
  constexpr double cap = F::exp_bits == 8 ? 0x1p128 : 0x1p16;
  const double m = std::fabs(v);
  const double r = round_even<F>(m > cap ? cap : m);
  return one_nan(static_cast<float>(std::copysign(r, v)));
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
// Eight f64 as f32, rounded to odd: what is lost is kept as a last bit of 1, so that a second rounding to nearest even is
// that of the f64.
inline __m256 odd8(const double* p) {
  const __m512d v = _mm512_loadu_pd(p);
  const __m256 cut = _mm512_cvt_roundpd_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __mmask8 lost = _mm512_cmp_pd_mask(_mm512_cvtps_pd(cut), v, _CMP_NEQ_OQ);  // false for NaN
  const __m256i bits = _mm256_castps_si256(cut);
  return _mm256_castsi256_ps(_mm256_mask_or_epi32(bits, lost, bits, _mm256_set1_epi32(1)));
}
inline __m512 odd16(const double* p) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(odd8(p)), odd8(p + 8), 1);
}
// NaNs as one pattern with their sign
inline __m512 one_nan16(__m512 v) {
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  const __m512i sign = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(static_cast<int>(0x80000000u)));
  return _mm512_castsi512_ps(_mm512_mask_or_epi32(_mm512_castps_si512(v), nan, sign, _mm512_set1_epi32(0x7fc00000)));
}
inline __m256i down16(__m512 v, F16) { return _mm512_cvtps_ph(one_nan16(v), _MM_FROUND_TO_NEAREST_INT); }
inline __m256i down16(__m512 v, BF16) {
  const __m512i b = _mm512_castps_si512(v);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
  const __m512i r = _mm512_add_epi32(_mm512_add_epi32(b, _mm512_set1_epi32(0x7fff)), last);
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);  // they must not carry into the sign
  const __m512i safe = _mm512_mask_mov_epi32(r, nan, _mm512_castps_si512(one_nan16(v)));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(safe, 16));
}
inline __m512 up16(__m256i v, F16) { return one_nan16(_mm512_cvtph_ps(v)); }
inline __m512 up16(__m256i v, BF16) {
  return one_nan16(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)));
}

template <class F>
inline void store_row(const double* src, char* dst, Index n) {
  Index i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + 2 * i), down16(odd16(src + i), F{}));
  if (i == n) return;
  alignas(64) double wide[16]{};
  alignas(32) char raw[32];
  std::memcpy(wide, src + i, static_cast<std::size_t>(n - i) * sizeof(double));
  _mm256_store_si256(reinterpret_cast<__m256i*>(raw), down16(odd16(wide), F{}));
  std::memcpy(dst + 2 * i, raw, static_cast<std::size_t>(2 * (n - i)));
}
inline void widen16(__m512 v, double* to) {
  _mm512_storeu_pd(to, _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
  _mm512_storeu_pd(to + 8, _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
}
template <class F>
inline void load_row(const char* src, Index n, double* dst) {
  Index i = 0;
  for (; i + 16 <= n; i += 16)
    widen16(up16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + 2 * i)), F{}), dst + i);
  if (i == n) return;
  alignas(64) double wide[16];
  alignas(32) char raw[32]{};
  std::memcpy(raw, src + 2 * i, static_cast<std::size_t>(2 * (n - i)));
  widen16(up16(_mm256_load_si256(reinterpret_cast<const __m256i*>(raw)), F{}), wide);
  std::memcpy(dst + i, wide, static_cast<std::size_t>(n - i) * sizeof(double));
}
// From f32 at once.
template <class F>
inline void narrow_row(const char* src, char* dst, Index n) {
  Index i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + 2 * i), down16(_mm512_loadu_ps(src + 4 * i), F{}));
  if (i == n) return;
  alignas(64) char wide[64]{}, raw[32];
  std::memcpy(wide, src + 4 * i, static_cast<std::size_t>(4 * (n - i)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(raw), down16(_mm512_load_ps(wide), F{}));
  std::memcpy(dst + 2 * i, raw, static_cast<std::size_t>(2 * (n - i)));
}
#define OPCONFORM_HALF_ROWS
inline constexpr bool kF16Rows = true;

#else

inline void load_bf16(const char* __restrict src, Index n, double* __restrict dst) {
  for (Index i = 0; i < n; ++i) {
    std::uint16_t raw;
    std::memcpy(&raw, src + 2 * i, 2);
    dst[i] = one_nan(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(raw) << 16)));
  }
}

inline void store_bf16(const double* __restrict src, char* __restrict dst, Index n) {
  for (Index i = 0; i < n; ++i) {
    const auto raw = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded<BF16>(src[i])) >> 16);
    std::memcpy(dst + 2 * i, &raw, 2);
  }
}

#if defined(__F16C__) && defined(__AVX2__)
inline constexpr bool kF16Rows = true;
inline void load_f16(const char* __restrict src, Index n, double* __restrict dst) {
  alignas(64) float wide[kChunk];
  alignas(64) std::uint16_t raw[kChunk];
  for (Index done = 0; done < n; done += kChunk) {
    const Index m = n - done < kChunk ? n - done : kChunk;
    const Index whole = (m + 7) / 8 * 8;
    const char* from = src + 2 * done;
    if (m < whole) {  // nothing may be read past the row
      std::memset(raw + (whole - 8), 0, 16);
      std::memcpy(raw, from, static_cast<std::size_t>(2 * m));
      from = reinterpret_cast<const char*>(raw);
    }
    for (Index i = 0; i < whole; i += 8)
      _mm256_store_ps(wide + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i))));
    for (Index i = 0; i < m; ++i) dst[done + i] = one_nan(static_cast<double>(wide[i]));
  }
}

inline void store_f16(const double* __restrict src, char* __restrict dst, Index n) {
  alignas(64) float wide[kChunk]{};
  alignas(64) std::uint16_t raw[kChunk];
  for (Index done = 0; done < n; done += kChunk) {
    const Index m = n - done < kChunk ? n - done : kChunk;
    for (Index i = 0; i < m; ++i) wide[i] = rounded<F16>(src[done + i]);
    char* to = m == kChunk ? dst + 2 * done : reinterpret_cast<char*>(raw);
    for (Index i = 0; i < m; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i),
                       _mm256_cvtps_ph(_mm256_load_ps(wide + i), _MM_FROUND_TO_NEAREST_INT));
    if (m < kChunk) std::memcpy(dst + 2 * done, raw, static_cast<std::size_t>(2 * m));
  }
}
#else
inline constexpr bool kF16Rows = false;  // element by element
inline void load_f16(const char*, Index, double*) {}
inline void store_f16(const double*, char*, Index) {}
#endif

template <class F>
inline void load_row(const char* src, Index n, double* dst) {
  F::exp_bits == 8 ? load_bf16(src, n, dst) : load_f16(src, n, dst);
}
template <class F>
inline void store_row(const double* src, char* dst, Index n) {
  F::exp_bits == 8 ? store_bf16(src, dst, n) : store_f16(src, dst, n);
}
#endif

}  // namespace opconform::half
