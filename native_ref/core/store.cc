// f64 and 64-bit integers to stored elements.
#include <algorithm>
#include <cstring>

#include "native_ref/core/block.h"
#include "native_ref/core/float_format.h"
#include "native_ref/core/half.h"

namespace opconform {
namespace {

// f64 -> stored element.
template <class T>
struct ToInt {
  using raw = T;
  static T down(double v) {
    // the bounds are exact in f64; 2^63 and 2^64 are the first values that do not fit
    constexpr double lo = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double hi = sizeof(T) == 8 ? (std::is_signed_v<T> ? 0x1p63 : 0x1p64)
                                         : static_cast<double>(std::numeric_limits<T>::max());
    if (!(v > lo)) return v != v ? T{0} : std::numeric_limits<T>::min();
    if (v >= hi) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
  }
};
// Integers of less than a byte.
[[gnu::noinline]] void store_bits(const double* __restrict src, char* __restrict dst, Index n, double lo, double hi,
                                  int all) {
  for (Index i = 0; i < n; ++i) {
    const double v = src[i], c = v < lo ? lo : v > hi ? hi : v;
    dst[i] = static_cast<char>(static_cast<int>(v != v ? 0 : c) & all);
  }
}
template <int Bits, bool Signed>
struct ToBits {
  using raw = std::uint8_t;
  static void row(const double* src, char* dst, Index n) {
    constexpr int all = (1 << Bits) - 1, lo = Signed ? -(1 << (Bits - 1)) : 0;
    store_bits(src, dst, n, lo, lo + all, all);
  }
};
struct ToF64 {
  using raw = double;
  static double down(double v) { return v; }
};
struct ToF32 {
  using raw = float;
  static float down(double v) { return static_cast<float>(v); }
};
template <class F>
struct ToHalf {
  using raw = std::uint16_t;
  static void row(const double* src, char* dst, Index n) {
    if constexpr (std::is_same_v<F, BF16> || half::kF16Rows) return half::store_row<F>(src, dst, n);
    for (Index i = 0; i < n; ++i) {
      const auto v = static_cast<raw>(encode<F>(src[i]));
      std::memcpy(dst + 2 * i, &v, sizeof v);
    }
  }
};
template <class F>
struct ToSmall {
  using raw = std::uint8_t;
  static raw down(double v) { return static_cast<raw>(encode<F>(v)); }
};
struct ToE8M0 {
  using raw = std::uint8_t;
  static raw down(double v) { return static_cast<raw>(encode_e8m0(v)); }
};
struct ToBool {
  using raw = std::uint8_t;
  static raw down(double v) { return v != 0 ? 1 : 0; }
  static raw low(std::int64_t v) { return v != 0 ? 1 : 0; }
};
template <class T>
struct LowBits {
  using raw = T;
  static T low(std::int64_t v) { return static_cast<T>(v); }
};
[[gnu::noinline]] void low_bits(const std::int64_t* __restrict src, char* __restrict dst, Index n, int all) {
  for (Index i = 0; i < n; ++i) dst[i] = static_cast<char>(src[i] & all);
}
template <int Bits>
struct LowNibble {
  using raw = std::uint8_t;
  static void row(const std::int64_t* src, char* dst, Index n) { low_bits(src, dst, n, (1 << Bits) - 1); }
};

// n elements side by side.  Once for each dtype, whatever its strides.
template <class R, class T, class Fn>
void store_row(const T* __restrict src, char* __restrict dst, Index n, Fn fn) {
  for (Index i = 0; i < n; ++i) {
    const R v = fn(src[i]);
    std::memcpy(dst + i * static_cast<Index>(sizeof(R)), &v, sizeof(R));
  }
}
template <class D>
[[gnu::noinline]] void store_row(const double* src, char* dst, Index n) {
  if constexpr (requires { D::row(src, dst, n); })
    D::row(src, dst, n);
  else
    store_row<typename D::raw>(src, dst, n, [](double v) { return D::down(v); });
}
template <class D>
[[gnu::noinline]] void store_row(const std::int64_t* src, char* dst, Index n) {
  if constexpr (requires { D::row(src, dst, n); })
    D::row(src, dst, n);
  else
    store_row<typename D::raw>(src, dst, n, [](std::int64_t v) { return D::low(v); });
}

// n elements that lie side by side, put apart.
template <class R>
[[gnu::noinline]] void scatter(const R* __restrict from, char* __restrict dst, Index stride, Index n) {
  for (Index i = 0; i < n; ++i) std::memcpy(dst + i * stride, from + i, sizeof(R));
}

template <class D, class T>
void store(const T* src, char* dst, Index stride, Index n) {
  using R = typename D::raw;
  if (stride == static_cast<Index>(sizeof(R))) return store_row<D>(src, dst, n);
  constexpr Index kSome = 128;
  R side_by_side[kSome];
  for (Index i = 0; i < n; i += kSome) {
    const Index m = std::min(n - i, kSome);
    store_row<D>(src + i, reinterpret_cast<char*>(side_by_side), m);
    scatter(side_by_side, dst + i * stride, stride, m);
  }
}

constexpr std::array<StoreF64, kDTypeCount> kStoreF64{
    store<ToF64>, store<ToF32>, store<ToHalf<F16>>, store<ToHalf<BF16>>,
    store<ToInt<std::int64_t>>, store<ToInt<std::int32_t>>, store<ToInt<std::int16_t>>, store<ToInt<std::int8_t>>,
    store<ToInt<std::uint64_t>>, store<ToInt<std::uint32_t>>, store<ToInt<std::uint16_t>>, store<ToInt<std::uint8_t>>,
    store<ToBool>, store<ToSmall<E4M3FN>>, store<ToSmall<E4M3FNUZ>>, store<ToSmall<E5M2>>, store<ToSmall<E5M2FNUZ>>,
    store<ToE8M0>, store<ToSmall<E2M1>>, store<ToBits<4, true>>, store<ToBits<4, false>>,
    store<ToBits<2, true>>, store<ToBits<2, false>>, nullptr, nullptr, nullptr,
    store<ToBits<1, false>>, store<ToBits<3, false>>, store<ToBits<6, false>>,
    store<ToSmall<E2M3>>, store<ToSmall<E3M2>>};

constexpr std::array<StoreI64, kDTypeCount> kStoreI64{
    nullptr, nullptr, nullptr, nullptr,
    store<LowBits<std::uint64_t>>, store<LowBits<std::uint32_t>>, store<LowBits<std::uint16_t>>,
    store<LowBits<std::uint8_t>>, store<LowBits<std::uint64_t>>, store<LowBits<std::uint32_t>>,
    store<LowBits<std::uint16_t>>, store<LowBits<std::uint8_t>>, store<ToBool>,
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    store<LowNibble<4>>, store<LowNibble<4>>, store<LowNibble<2>>, store<LowNibble<2>>,
    nullptr, nullptr, nullptr, store<LowNibble<1>>, store<LowNibble<3>>, store<LowNibble<6>>,
    nullptr, nullptr};

}  // namespace

StoreF64 store_f64(DType d) { return kStoreF64[static_cast<std::size_t>(d)]; }
StoreI64 store_i64(DType d) { return kStoreI64[static_cast<std::size_t>(d)]; }

}  // namespace opconform
