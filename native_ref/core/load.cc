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
};
template <class F>
struct Small {
  using raw = StoredAs<F>;
};
struct E8M0 {
  using raw = std::uint8_t;
  static double up(raw v) { return decode_e8m0(v); }
};
struct Truth {
  using raw = std::uint8_t;
  static double up(raw v) { return v ? 1.0 : 0.0; }
};
template <int Bits, bool Signed>
struct Nibble {  // low bits of a byte; what stands above them is not ours
  using raw = std::uint8_t;
  static std::int64_t value(raw v) {
    if constexpr (Signed)
      return static_cast<std::int64_t>(static_cast<std::int8_t>(static_cast<std::uint8_t>(v << (8 - Bits)))) >>
             (8 - Bits);
    else
      return v & ((1 << Bits) - 1);
  }
  static double up(raw v) { return static_cast<double>(value(v)); }
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

// Decoding takes much code: it is there once for each format, and elements that lie apart are put side by side first.
template <class F>
[[gnu::noinline]] void load_row(const char* __restrict src, Index n, double* __restrict dst) {
  using R = typename Small<F>::raw;
  if constexpr (std::is_same_v<F, BF16>) return half::load_row<BF16>(src, n, dst);
  if constexpr (std::is_same_v<F, F16> && half::kF16Rows) return half::load_row<F16>(src, n, dst);
  for (Index i = 0; i < n; ++i) dst[i] = decode<F>(get<R>(src + i * static_cast<Index>(sizeof(R))));
}
template <class F>
void load_small(const char* __restrict src, Index stride, Index n, double* __restrict dst) {
  using R = typename Small<F>::raw;
  if (stride == static_cast<Index>(sizeof(R))) return load_row<F>(src, n, dst);
  if (stride == 0) {
    const double v = n > 0 ? decode<F>(get<R>(src)) : 0;
    for (Index i = 0; i < n; ++i) dst[i] = v;
    return;
  }
  constexpr Index kSome = 128;
  R row[kSome];
  for (Index i = 0; i < n; i += kSome, src += kSome * stride) {
    const Index m = std::min(n - i, kSome);
    for (Index k = 0; k < m; ++k) row[k] = get<R>(src + k * stride);
    load_row<F>(reinterpret_cast<const char*>(row), m, dst + i);
  }
}

template <class D>
void load_int(const char* __restrict src, Index stride, Index n, std::int64_t* __restrict dst) {
  using R = typename D::raw;
  const auto up = [](R v) {
    if constexpr (requires { D::value(v); })
      return D::value(v);
    else if constexpr (std::is_same_v<D, Truth>)
      return std::int64_t{v != 0};
    else
      return static_cast<std::int64_t>(v);
  };
  if (stride == static_cast<Index>(sizeof(R))) {
    for (Index i = 0; i < n; ++i) dst[i] = up(get<R>(src + i * static_cast<Index>(sizeof(R))));
  } else {
    for (Index i = 0; i < n; ++i) dst[i] = up(get<R>(src + i * stride));
  }
}

constexpr std::array<LoadF64, kDTypeCount> kLoadF64{
    load<Plain<double>>, load<Plain<float>>, load_small<F16>, load_small<BF16>,
    load<Plain<std::int64_t>>, load<Plain<std::int32_t>>, load<Plain<std::int16_t>>, load<Plain<std::int8_t>>,
    load<Plain<std::uint64_t>>, load<Plain<std::uint32_t>>, load<Plain<std::uint16_t>>, load<Plain<std::uint8_t>>,
    load<Truth>, load_small<E4M3FN>, load_small<E4M3FNUZ>, load_small<E5M2>, load_small<E5M2FNUZ>, load<E8M0>,
    load_small<E2M1>, load<Nibble<4, true>>, load<Nibble<4, false>>, load<Nibble<2, true>>, load<Nibble<2, false>>,
    nullptr, nullptr, nullptr, load<Nibble<1, false>>, load<Nibble<3, false>>, load<Nibble<6, false>>,
    load_small<E2M3>, load_small<E3M2>};

constexpr std::array<LoadI64, kDTypeCount> kLoadI64{
    nullptr, nullptr, nullptr, nullptr,
    load_int<Plain<std::int64_t>>, load_int<Plain<std::int32_t>>, load_int<Plain<std::int16_t>>,
    load_int<Plain<std::int8_t>>, load_int<Plain<std::uint64_t>>, load_int<Plain<std::uint32_t>>,
    load_int<Plain<std::uint16_t>>, load_int<Plain<std::uint8_t>>, load_int<Truth>,
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    load_int<Nibble<4, true>>, load_int<Nibble<4, false>>, load_int<Nibble<2, true>>, load_int<Nibble<2, false>>,
    nullptr, nullptr, nullptr, load_int<Nibble<1, false>>, load_int<Nibble<3, false>>, load_int<Nibble<6, false>>,
    nullptr, nullptr};

}  // namespace

LoadF64 load_f64(DType d) { return kLoadF64[static_cast<std::size_t>(d)]; }
LoadI64 load_i64(DType d) { return kLoadI64[static_cast<std::size_t>(d)]; }

}  // namespace opconform
