#include "native_ref/core/block.h"

#include <cstring>

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
  using raw = std::conditional_t<(F::bits > 8), std::uint16_t, std::uint8_t>;
  static double up(raw v) { return decode<F>(v); }
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
  if constexpr (std::is_same_v<D, Small<BF16>>)
    if (stride == 2) return half::load_row<BF16>(src, n, dst);
  if constexpr (std::is_same_v<D, Small<F16>> && half::kF16Rows)
    if (stride == 2) return half::load_row<F16>(src, n, dst);
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
template <int Bits, bool Signed>
struct ToNibble {
  using raw = std::uint8_t;
  static raw down(double v) {
    constexpr double lo = Signed ? -static_cast<double>(1 << (Bits - 1)) : 0.0;
    constexpr double hi = static_cast<double>(Signed ? (1 << (Bits - 1)) - 1 : (1 << Bits) - 1);
    if (v != v) return 0;
    const double c = v < lo ? lo : v > hi ? hi : v;
    return static_cast<raw>(static_cast<int>(c) & ((1 << Bits) - 1));
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
struct ToSmall {
  using raw = typename Small<F>::raw;
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
template <int Bits>
struct LowNibble {
  using raw = std::uint8_t;
  static raw low(std::int64_t v) { return static_cast<raw>(v & ((1 << Bits) - 1)); }
};

template <class T, class R, class Fn>
void store_with(const T* __restrict src, char* __restrict dst, Index stride, Index n, Fn fn) {
  if (stride == static_cast<Index>(sizeof(R))) {
    for (Index i = 0; i < n; ++i) {
      const R v = fn(src[i]);
      std::memcpy(dst + i * static_cast<Index>(sizeof(R)), &v, sizeof(R));
    }
  } else {
    for (Index i = 0; i < n; ++i) {
      const R v = fn(src[i]);
      std::memcpy(dst + i * stride, &v, sizeof(R));
    }
  }
}
template <class D>
void store(const double* src, char* dst, Index stride, Index n) {
  if constexpr (std::is_same_v<D, ToSmall<BF16>>)
    if (stride == 2) return half::store_row<BF16>(src, dst, n);
  if constexpr (std::is_same_v<D, ToSmall<F16>> && half::kF16Rows)
    if (stride == 2) return half::store_row<F16>(src, dst, n);
  store_with<double, typename D::raw>(src, dst, stride, n, [](double v) { return D::down(v); });
}
template <class D>
void store_low(const std::int64_t* src, char* dst, Index stride, Index n) {
  store_with<std::int64_t, typename D::raw>(src, dst, stride, n, [](std::int64_t v) { return D::low(v); });
}

constexpr std::array<LoadF64, kDTypeCount> kLoadF64{
    load<Plain<double>>, load<Plain<float>>, load<Small<F16>>, load<Small<BF16>>,
    load<Plain<std::int64_t>>, load<Plain<std::int32_t>>, load<Plain<std::int16_t>>, load<Plain<std::int8_t>>,
    load<Plain<std::uint64_t>>, load<Plain<std::uint32_t>>, load<Plain<std::uint16_t>>, load<Plain<std::uint8_t>>,
    load<Truth>, load<Small<E4M3FN>>, load<Small<E4M3FNUZ>>, load<Small<E5M2>>, load<Small<E5M2FNUZ>>, load<E8M0>,
    load<Small<E2M1>>, load<Nibble<4, true>>, load<Nibble<4, false>>, load<Nibble<2, true>>, load<Nibble<2, false>>,
    nullptr, nullptr, nullptr, load<Nibble<1, false>>, load<Nibble<3, false>>, load<Nibble<6, false>>,
    load<Small<E2M3>>, load<Small<E3M2>>};

constexpr std::array<LoadI64, kDTypeCount> kLoadI64{
    nullptr, nullptr, nullptr, nullptr,
    load_int<Plain<std::int64_t>>, load_int<Plain<std::int32_t>>, load_int<Plain<std::int16_t>>,
    load_int<Plain<std::int8_t>>, load_int<Plain<std::uint64_t>>, load_int<Plain<std::uint32_t>>,
    load_int<Plain<std::uint16_t>>, load_int<Plain<std::uint8_t>>, load_int<Truth>,
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    load_int<Nibble<4, true>>, load_int<Nibble<4, false>>, load_int<Nibble<2, true>>, load_int<Nibble<2, false>>,
    nullptr, nullptr, nullptr, load_int<Nibble<1, false>>, load_int<Nibble<3, false>>, load_int<Nibble<6, false>>,
    nullptr, nullptr};

constexpr std::array<StoreF64, kDTypeCount> kStoreF64{
    store<ToF64>, store<ToF32>, store<ToSmall<F16>>, store<ToSmall<BF16>>,
    store<ToInt<std::int64_t>>, store<ToInt<std::int32_t>>, store<ToInt<std::int16_t>>, store<ToInt<std::int8_t>>,
    store<ToInt<std::uint64_t>>, store<ToInt<std::uint32_t>>, store<ToInt<std::uint16_t>>, store<ToInt<std::uint8_t>>,
    store<ToBool>, store<ToSmall<E4M3FN>>, store<ToSmall<E4M3FNUZ>>, store<ToSmall<E5M2>>, store<ToSmall<E5M2FNUZ>>,
    store<ToE8M0>, store<ToSmall<E2M1>>, store<ToNibble<4, true>>, store<ToNibble<4, false>>,
    store<ToNibble<2, true>>, store<ToNibble<2, false>>, nullptr, nullptr, nullptr,
    store<ToNibble<1, false>>, store<ToNibble<3, false>>, store<ToNibble<6, false>>,
    store<ToSmall<E2M3>>, store<ToSmall<E3M2>>};

constexpr std::array<StoreI64, kDTypeCount> kStoreI64{
    nullptr, nullptr, nullptr, nullptr,
    store_low<LowBits<std::int64_t>>, store_low<LowBits<std::int32_t>>, store_low<LowBits<std::int16_t>>,
    store_low<LowBits<std::int8_t>>, store_low<LowBits<std::uint64_t>>, store_low<LowBits<std::uint32_t>>,
    store_low<LowBits<std::uint16_t>>, store_low<LowBits<std::uint8_t>>, store_low<ToBool>,
    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
    store_low<LowNibble<4>>, store_low<LowNibble<4>>, store_low<LowNibble<2>>, store_low<LowNibble<2>>,
    nullptr, nullptr, nullptr, store_low<LowNibble<1>>, store_low<LowNibble<3>>, store_low<LowNibble<6>>,
    nullptr, nullptr};

}  // namespace

LoadF64 load_f64(DType d) { return kLoadF64[static_cast<std::size_t>(d)]; }
LoadI64 load_i64(DType d) { return kLoadI64[static_cast<std::size_t>(d)]; }
StoreF64 store_f64(DType d) { return kStoreF64[static_cast<std::size_t>(d)]; }
StoreI64 store_i64(DType d) { return kStoreI64[static_cast<std::size_t>(d)]; }

}  // namespace opconform
