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

// step(from, to) turns kStep elements of kFrom bytes into as many of kTo bytes; what is left of a row goes through a
// step of its own, so that nothing beyond the row is touched.
template <int kStep, int kFrom, int kTo, class Step>
inline void in_steps(const char* src, char* dst, Index n, Step step) {
  Index i = 0;
  for (; i + kStep <= n; i += kStep) step(src + kFrom * i, dst + kTo * i);
  if (i == n) return;
  alignas(64) char in[kStep * kFrom]{}, out[kStep * kTo];
  std::memcpy(in, src + kFrom * i, static_cast<std::size_t>(kFrom * (n - i)));
  step(in, out);
  std::memcpy(dst + kTo * i, out, static_cast<std::size_t>(kTo * (n - i)));
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

inline __m256i halves16(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline void halves16(__m256i v, char* to) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }

template <class F>
inline void store_row(const double* src, char* dst, Index n) {
  in_steps<16, 8, 2>(reinterpret_cast<const char*>(src), dst, n, [](const char* from, char* to) {
    halves16(down16(odd16(reinterpret_cast<const double*>(from)), F{}), to);
  });
}
template <class F>
inline void load_row(const char* src, Index n, double* dst) {
  in_steps<16, 2, 8>(src, reinterpret_cast<char*>(dst), n, [](const char* from, char* to) {
    const __m512 v = up16(halves16(from), F{});
    _mm512_storeu_pd(to, _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
    _mm512_storeu_pd(to + 64, _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
  });
}
// From f32 at once.
template <class F>
inline void narrow_row(const char* src, char* dst, Index n) {
  in_steps<16, 4, 2>(src, dst, n, [](const char* from, char* to) { halves16(down16(_mm512_loadu_ps(from), F{}), to); });
}
// Back to f32.
template <class F>
inline void widen_row(const char* src, char* dst, Index n) {
  in_steps<16, 2, 4>(src, dst, n, [](const char* from, char* to) { _mm512_storeu_ps(to, up16(halves16(from), F{})); });
}
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

// f32 to halves at once, and back.
#if defined(__F16C__) && defined(__AVX2__)
// NaNs as one pattern with their sign
inline __m256 one_nan8(__m256 v) {
  const __m256 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
  const __m256 nan = _mm256_or_ps(sign, _mm256_set1_ps(std::numeric_limits<float>::quiet_NaN()));
  return _mm256_blendv_ps(v, nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
}
inline __m128i down8(__m256 v, F16) { return _mm256_cvtps_ph(one_nan8(v), _MM_FROUND_TO_NEAREST_INT); }
inline __m128i down8(__m256 v, BF16) {
  const __m256i b = _mm256_castps_si256(v);
  const __m256i last = _mm256_and_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(1));
  const __m256 r = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_add_epi32(b, _mm256_set1_epi32(0x7fff)), last));
  const __m256 safe = _mm256_blendv_ps(r, one_nan8(v), _mm256_cmp_ps(v, v, _CMP_UNORD_Q));  // nor carry into the sign
  const __m256i high = _mm256_srli_epi32(_mm256_castps_si256(safe), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
inline __m256 up8(__m128i v, F16) { return one_nan8(_mm256_cvtph_ps(v)); }
inline __m256 up8(__m128i v, BF16) {
  return one_nan8(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16)));
}
template <class F>
inline void narrow_row(const char* src, char* dst, Index n) {
  in_steps<8, 4, 2>(src, dst, n, [](const char* from, char* to) {
    const __m256 v = _mm256_loadu_ps(reinterpret_cast<const float*>(from));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), down8(v, F{}));
  });
}
template <class F>
inline void widen_row(const char* src, char* dst, Index n) {
  in_steps<8, 2, 4>(src, dst, n, [](const char* from, char* to) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    _mm256_storeu_ps(reinterpret_cast<float*>(to), up8(v, F{}));
  });
}
#else  // in steps that are vectors everywhere
inline std::uint32_t down(std::uint32_t b, F16) {
  const std::uint32_t m = b & 0x7fffffff;
  // below the smallest normal the unit is 2^-24, which is that of numbers from 0.5 on
  const std::uint32_t low = std::bit_cast<std::uint32_t>(std::bit_cast<float>(m) + 0.5f) - 0x3f000000;
  const std::uint32_t normal = (m + 0xfff + ((m >> 13) & 1) - (112u << 23)) >> 13;
  std::uint32_t r = static_cast<std::int32_t>(m) < 0x38800000 ? low : normal;
  r = static_cast<std::int32_t>(m) < 0x477ff000 ? r : 0x7c00;
  r = static_cast<std::int32_t>(m) > 0x7f800000 ? 0x7e00 : r;
  return r | (b >> 16 & 0x8000);
}
inline std::uint32_t down(std::uint32_t b, BF16) {
  const std::uint32_t r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;
  return static_cast<std::int32_t>(b & 0x7fffffff) > 0x7f800000 ? (b >> 16 & 0x8000) | 0x7fc0 : r;
}
inline std::uint32_t up(std::uint32_t h, F16) {
  const std::uint32_t m = h & 0x7fff;
  const std::uint32_t scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(m << 13) * 0x1p112f);
  const std::uint32_t high = static_cast<std::int32_t>(m) > 0x7c00 ? 0x7fc00000 : 0x7f800000;
  return (static_cast<std::int32_t>(m) < 0x7c00 ? scaled : high) | (h & 0x8000) << 16;
}
inline std::uint32_t up(std::uint32_t h, BF16) {
  return static_cast<std::int32_t>(h & 0x7fff) > 0x7f80 ? (h & 0x8000) << 16 | 0x7fc00000 : h << 16;
}
template <class F>
inline void narrow_row(const char* __restrict src, char* __restrict dst, Index n) {
  for (Index i = 0; i < n; ++i) {
    std::uint32_t wide;
    std::memcpy(&wide, src + 4 * i, 4);
    const auto raw = static_cast<std::uint16_t>(down(wide, F{}));
    std::memcpy(dst + 2 * i, &raw, 2);
  }
}
template <class F>
inline void widen_row(const char* __restrict src, char* __restrict dst, Index n) {
  for (Index i = 0; i < n; ++i) {
    std::uint16_t raw;
    std::memcpy(&raw, src + 2 * i, 2);
    const std::uint32_t wide = up(raw, F{});
    std::memcpy(dst + 4 * i, &wide, 4);
  }
}
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
