// Stored elements to f64 and to 64-bit integers.
#include <algorithm>
#include <cstring>

#include "native_ref/core/block.h"
#include "native_ref/core/float_format.h"
#include "native_ref/core/half.h"

namespace opconform {
namespace {

template <class T>
T get(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// A stored element -> f64.  One struct a dtype: `raw` is what lies in memory.
template <class T>
struct Plain {
  using raw = T;
  static double up(T v) { return static_cast<double>(v); }
  static std::int64_t value(T v) { return static_cast<std::int64_t>(v); }
};
struct Truth {
  using raw = std::uint8_t;
  static double up(raw v) { return v ? 1.0 : 0.0; }
  static std::int64_t value(raw v) { return v != 0; }
};

template <class D>
void load(const char* __restrict src, Index stride, Index n, double* __restrict dst) {
  using R = typename D::raw;
  if (stride == static_cast<Index>(sizeof(R))) {
    for (Index i = 0; i < n; ++i) dst[i] = D::up(get<R>(src + i * static_cast<Index>(sizeof(R))));
  } else if (stride == 0) {
    const double v = n > 0 ? D::up(get<R>(src)) : 0;
    for (Index i = 0; i < n; ++i) dst[i] = v;
  } else {
    for (Index i = 0; i < n; ++i) dst[i] = D::up(get<R>(src + i * stride));
  }
}
template <class D>
void load_int(const char* __restrict src, Index stride, Index n, std::int64_t* __restrict dst) {
  using R = typename D::raw;
  if (stride == static_cast<Index>(sizeof(R))) {
    for (Index i = 0; i < n; ++i) dst[i] = D::value(get<R>(src + i * static_cast<Index>(sizeof(R))));
  } else {
    for (Index i = 0; i < n; ++i) dst[i] = D::value(get<R>(src + i * stride));
  }
}

// Floats of a byte: all 256 of them are decoded once.  Looking them up is about as quick as decoding in vectors, and
// less code.
using Table = std::array<double, 256>;
[[gnu::noinline]] Table table_of(double (*decode)(std::uint32_t)) {
  Table t;
  for (std::uint32_t i = 0; i < t.size(); ++i) t[i] = decode(i);
  return t;
}
[[gnu::noinline]] void look_up(const Table& __restrict table, const char* __restrict src, Index stride, Index n,
                               double* __restrict dst) {
  Index i = 0;
  for (; stride == 1 && i + 8 <= n; i += 8) {  // one read for eight: gathers are slower
    const auto eight = get<std::uint64_t>(src + i);
    for (int k = 0; k < 8; ++k) dst[i + k] = table[(eight >> 8 * k) & 255];
  }
  for (; i < n; ++i) dst[i] = table[static_cast<std::uint8_t>(src[i * stride])];
}
template <double (*Decode)(std::uint32_t)>
void load_byte(const char* src, Index stride, Index n, double* dst) {
  static const Table table = table_of(Decode);
  look_up(table, src, stride, n, dst);
}

// Integers of less than a byte: what stands above their bits is not ours.
template <class T>
[[gnu::noinline]] void low_bits(int bits, bool is_signed, const char* __restrict src, Index stride, Index n,
                                T* __restrict dst) {
  const int all = (1 << bits) - 1, sign = is_signed ? 1 << (bits - 1) : 0;
  const auto value = [=](char v) { return static_cast<T>(((v & all) ^ sign) - sign); };
  if (stride == 1)
    for (Index i = 0; i < n; ++i) dst[i] = value(src[i]);
  else
    for (Index i = 0; i < n; ++i) dst[i] = value(src[i * stride]);
}
template <int Bits, bool Signed, class T>
void load_bits(const char* src, Index stride, Index n, T* dst) {
  low_bits(Bits, Signed, src, stride, n, dst);
}

// f16 and bf16: decoding takes much code.  It is there once, and elements that lie apart are put side by side first.
template <class F>
[[gnu::noinline]] void load_row(const char* __restrict src, Index n, double* __restrict dst) {
  if constexpr (std::is_same_v<F, BF16> || half::kF16Rows) return half::load_row<F>(src, n, dst);
  for (Index i = 0; i < n; ++i) dst[i] = decode<F>(get<std::uint16_t>(src + 2 * i));
}
template <class F>
void load_half(const char* __restrict src, Index stride, Index n, double* __restrict dst) {
  if (stride == 2) return load_row<F>(src, n, dst);
  if (stride == 0) {
    const double v = n > 0 ? decode<F>(get<std::uint16_t>(src)) : 0;
    for (Index i = 0; i < n; ++i) dst[i] = v;
    return;
  }
  constexpr Index kSome = 128;
  std::uint16_t row[kSome];
  for (Index i = 0; i < n; i += kSome, src += kSome * stride) {
    const Index m = std::min(n - i, kSome);
    for (Index k = 0; k < m; ++k) row[k] = get<std::uint16_t>(src + k * stride);
    load_row<F>(reinterpret_cast<const char*>(row), m, dst + i);
  }
}

constexpr std::array<LoadF64, kDTypeCount> kLoadF64{
    load<Plain<double>>, load<Plain<float>>, load_half<F16>, load_half<BF16>,
    load<Plain<std::int64_t>>, load<Plain<std::int32_t>>, load<Plain<std::int16_t>>, load<Plain<std::int8_t>>,
    load<Plain<std::uint64_t>>, load<Plain<std::uint32_t>>, load<Plain<std::uint16_t>>, load<Plain<std::uint8_t>>,
    load<Truth>, load_byte<decode<E4M3FN>>, load_byte<decode<E4M3FNUZ>>, load_byte<decode<E5M2>>,
    load_byte<decode<E5M2FNUZ>>, load_byte<decode_e8m0>, load_byte<decode<E2M1>>,
    load_bits<4, true>, load_bits<4, false>, load_bits<2, true>, load_bits<2, false>,
    nullptr, nullptr, nullptr, load_bits<1, false>, load_bits<3, false>, load_bits<6, false>,
    load_byte<decode<E2M3>>, load_byte<decode<E3M2>>};

constexpr std::array<LoadI64, kDTypeCount> kLoadI64{
    nullptr, nullptr, nullptr, nullptr,
    load_int<Plain<std::int64_t>>, load_int<Plain<std::int32_t>>, load_int<Plain<std::int16_t>>,
    load_int<Plain<std::int8_t>>, load_int<Plain<std::uint64_t>>, load_int<Plain<std::uint32_t>>,
    load_int<Plain<std::uint16_t>>, load_int<Plain<std::uint8_t>>, load_int<Truth>,
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    load_bits<4, true>, load_bits<4, false>, load_bits<2, true>, load_bits<2, false>,
    nullptr, nullptr, nullptr, load_bits<1, false>, load_bits<3, false>, load_bits<6, false>,
    nullptr, nullptr};

}  // namespace

LoadF64 load_f64(DType d) { return kLoadF64[static_cast<std::size_t>(d)]; }
LoadI64 load_i64(DType d) { return kLoadI64[static_cast<std::size_t>(d)]; }

}  // namespace opconform
