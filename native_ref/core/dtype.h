// Element types by the numbers that harness.core.dtypes gives them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace opconform {

enum class DType : std::int32_t {
  f64 = 0, f32, f16, bf16,
  i64 = 4, i32, i16, i8,
  u64 = 8, u32, u16, u8,
  boolean = 12,
  f8e4m3fn = 13, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f4e2m1,
  i4 = 19, u4, i2, u2,
  c64 = 23, c128, str,
  u1 = 26, u3, u6,
  f6e2m3 = 29, f6e3m2,
};
inline constexpr int kDTypeCount = 31;

enum class Kind : std::uint8_t { floating, sint, uint, boolean, complex, other };

struct DTypeInfo {
  const char* name;
  Kind kind;
  std::uint8_t bytes;  // as stored: sub-byte types take one byte
  std::uint8_t bits;   // as specified
};

inline constexpr std::array<DTypeInfo, kDTypeCount> kDTypes{{
    {"f64", Kind::floating, 8, 64},       {"f32", Kind::floating, 4, 32},
    {"f16", Kind::floating, 2, 16},       {"bf16", Kind::floating, 2, 16},
    {"i64", Kind::sint, 8, 64},           {"i32", Kind::sint, 4, 32},
    {"i16", Kind::sint, 2, 16},           {"i8", Kind::sint, 1, 8},
    {"u64", Kind::uint, 8, 64},           {"u32", Kind::uint, 4, 32},
    {"u16", Kind::uint, 2, 16},           {"u8", Kind::uint, 1, 8},
    {"bool", Kind::boolean, 1, 8},        {"f8e4m3fn", Kind::floating, 1, 8},
    {"f8e4m3fnuz", Kind::floating, 1, 8}, {"f8e5m2", Kind::floating, 1, 8},
    {"f8e5m2fnuz", Kind::floating, 1, 8}, {"f8e8m0", Kind::floating, 1, 8},
    {"f4e2m1", Kind::floating, 1, 4},     {"i4", Kind::sint, 1, 4},
    {"u4", Kind::uint, 1, 4},             {"i2", Kind::sint, 1, 2},
    {"u2", Kind::uint, 1, 2},             {"c64", Kind::complex, 8, 64},
    {"c128", Kind::complex, 16, 128},     {"str", Kind::other, 8, 0},
    {"u1", Kind::uint, 1, 1},             {"u3", Kind::uint, 1, 3},
    {"u6", Kind::uint, 1, 6},             {"f6e2m3", Kind::floating, 1, 6},
    {"f6e3m2", Kind::floating, 1, 6},
}};

constexpr const DTypeInfo& info(DType d) { return kDTypes[static_cast<std::size_t>(d)]; }
constexpr bool is_float(DType d) { return info(d).kind == Kind::floating; }
constexpr bool is_sint(DType d) { return info(d).kind == Kind::sint; }
constexpr bool is_uint(DType d) { return info(d).kind == Kind::uint; }
constexpr bool is_bool(DType d) { return info(d).kind == Kind::boolean; }
constexpr bool is_int(DType d) { return is_sint(d) || is_uint(d) || is_bool(d); }

}  // namespace opconform
