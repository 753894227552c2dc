#include "native_ref/kernels/fill/fill.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/float_format.h"

namespace opconform {
namespace {

std::uint64_t hash(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ull + (i + 1) * 0xd1342543de82ef95ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// [0, 1) in steps of 2^-52, by placing bits under an exponent (no int to float conversion: cheap in every vector set)
double fraction(std::uint64_t h) { return std::bit_cast<double>((h >> 12) | 0x3ff0000000000000ull) - 1.0; }

// 0..n-1 for n < 2^31
std::uint64_t below(std::uint64_t h, std::uint64_t n) { return ((h >> 32) * n) >> 32; }

std::uint64_t sign_of(std::uint64_t h) { return (h & 1) << 63; }

struct Range {
  std::int64_t lo;
  std::uint64_t hi;
};

Range range(DType d) {
  const int bits = info(d).bits;
  if (is_bool(d)) return {0, 1};
  if (is_sint(d)) return {-static_cast<std::int64_t>((1ull << (bits - 1)) - 1) - 1, (1ull << (bits - 1)) - 1};
  return {0, bits == 64 ? ~0ull : (1ull << bits) - 1};
}

// Blocks of V (int64 or f64), written in y's type.
template <class V, class Fn>
void blocks(std::uint64_t seed, const Tensor& y, Fn fn) {
  Writer out(y);
  V block[kBlock];
  const Index total = y.size();
  for (Index first = 0; first < total; first += kBlock) {
    const Index n = std::min(kBlock, total - first);
    for (Index i = 0; i < n; ++i) block[i] = fn(hash(seed, static_cast<std::uint64_t>(first + i)), first + i);
    out.next(block, n);
  }
}

template <class U, class Fn>
void patterns_of(std::uint64_t seed, const Tensor& y, std::uint64_t mask, Fn fn) {
  U* const to = reinterpret_cast<U*>(y.data);
  const Index n = y.size();
  for (Index i = 0; i < n; ++i) to[i] = static_cast<U>(fn(hash(seed, static_cast<std::uint64_t>(i)), i) & mask);
}

// Raw patterns, low bits of fn's result.
template <class Fn>
void patterns(std::uint64_t seed, const Tensor& y, Fn fn) {
  const int bits = info(y.dtype).bits;
  const std::uint64_t mask = is_bool(y.dtype) ? 1 : bits >= 64 ? ~0ull : (1ull << bits) - 1;
  switch (y.bytes()) {
    case 1: return patterns_of<std::uint8_t>(seed, y, mask, fn);
    case 2: return patterns_of<std::uint16_t>(seed, y, mask, fn);
    case 4: return patterns_of<std::uint32_t>(seed, y, mask, fn);
    default: return patterns_of<std::uint64_t>(seed, y, mask, fn);
  }
}

// 2^lo .. 2^hi, log-uniform exponent and random fraction bits
double log_uniform(std::uint64_t h, int lo, int hi) {
  const std::uint64_t e = below(h << 20, static_cast<std::uint64_t>(hi - lo)) + static_cast<std::uint64_t>(lo + 1023);
  return std::bit_cast<double>((e << 52) | (h >> 12));
}

int wide_exponent(DType d) {
  switch (d) {
    case DType::f16: return 12;
    case DType::f8e5m2:
    case DType::f8e5m2fnuz: return 12;
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz: return 6;
    case DType::f4e2m1:
    case DType::f6e2m3: return 2;
    case DType::f6e3m2: return 4;
    default: return 32;
  }
}

struct SpecialBits {
  std::array<std::uint64_t, 20> v;
  std::uint64_t count = 0;
  void add(std::uint64_t b) { v[static_cast<std::size_t>(count++)] = b; }
};

template <class F>
SpecialBits specials_of() {
  SpecialBits s;
  for (std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{F::sign_bit}}) {
    if (F::special != Special::fnuz || sign == 0) s.add(sign);                     // 0
    s.add(sign | 1);                                                                 // smallest subnormal
    s.add(sign | ((1u << F::frac) - 1u));                                            // largest subnormal
    s.add(sign | (1u << F::frac));                                                   // smallest normal
    s.add(sign | F::max_bits);                                                       // largest finite
    s.add(sign | (static_cast<std::uint64_t>(F::bias) << F::frac));                 // 1
    if (F::special == Special::ieee) s.add(sign | F::inf_bits);
  }
  if (F::special != Special::none) s.add(F::nan_bits);
  return s;
}

SpecialBits specials(DType d) {
  SpecialBits s;
  switch (d) {
    case DType::f64:
      for (std::uint64_t sign : {0ull, 1ull << 63})
        for (std::uint64_t m : {0ull, 1ull, 0xfffffffffffffull, 0x10000000000000ull, 0x7fefffffffffffffull,
                                0x3ff0000000000000ull, 0x7ff0000000000000ull})
          s.add(sign | m);
      s.add(0x7ff8000000000000ull);
      return s;
    case DType::f32:
      for (std::uint64_t sign : {0ull, 1ull << 31})
        for (std::uint64_t m : {0ull, 1ull, 0x7fffffull, 0x800000ull, 0x7f7fffffull, 0x3f800000ull, 0x7f800000ull})
          s.add(sign | m);
      s.add(0x7fc00000ull);
      return s;
    case DType::f16: return specials_of<F16>();
    case DType::bf16: return specials_of<BF16>();
    case DType::f8e4m3fn: return specials_of<E4M3FN>();
    case DType::f8e4m3fnuz: return specials_of<E4M3FNUZ>();
    case DType::f8e5m2: return specials_of<E5M2>();
    case DType::f8e5m2fnuz: return specials_of<E5M2FNUZ>();
    case DType::f4e2m1: return specials_of<E2M1>();
    case DType::f6e2m3: return specials_of<E2M3>();
    case DType::f6e3m2: return specials_of<E3M2>();
    case DType::f8e8m0:
      for (std::uint64_t v : {0ull, 1ull, 126ull, 127ull, 128ull, 254ull, 255ull}) s.add(v);
      return s;
    default: {
      const Range r = range(d);
      for (std::uint64_t v : {static_cast<std::uint64_t>(r.lo), static_cast<std::uint64_t>(r.lo) + 1, r.hi, r.hi - 1,
                              std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}})
        s.add(v);
      return s;
    }
  }
}

// the next pattern up or down in value, `steps` of them, never past the ends of the finite range
std::uint64_t step_bits(std::uint64_t bits, int steps, std::uint64_t sign_bit) {
  std::int64_t key = static_cast<std::int64_t>(bits & (sign_bit - 1));
  if (bits & sign_bit) key = -key;
  key += steps;
  return key < 0 ? static_cast<std::uint64_t>(-key) | sign_bit : static_cast<std::uint64_t>(key);
}

template <class U>
void step_all(std::uint64_t seed, const Tensor& y) {
  U* const at = reinterpret_cast<U*>(y.data);
  const Index n = y.size();
  for (Index i = 0; i < n; ++i) {
    const std::uint64_t h = hash(seed, static_cast<std::uint64_t>(i));
    at[i] = static_cast<U>(step_bits(at[i], static_cast<int>(below(h << 20, 5)) - 2, 1ull << (8 * sizeof(U) - 1)));
  }
}

void branch(std::uint64_t seed, const Tensor& y) {
  static constexpr std::array<double, 9> points{0, 0.5, 1, 2, 2.5, 3, 6, 20, 0};
  if (!is_float(y.dtype)) {
    const Range r = range(y.dtype);
    blocks<std::int64_t>(seed, y, [&](std::uint64_t h, Index) {
      auto v = static_cast<std::int64_t>(points[below(h, 9)]) + static_cast<std::int64_t>(below(h << 20, 3)) - 1;
      v = (h & 1) && r.lo < 0 ? -v : v;
      return std::clamp(v, std::max<std::int64_t>(r.lo, -64),
                        static_cast<std::int64_t>(std::min<std::uint64_t>(r.hi, 64)));
    });
    return;
  }
  blocks<double>(seed, y, [&](std::uint64_t h, Index) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(points[below(h, 9)]) | sign_of(h));
  });
  // f4 and f8 have too few values for steps to stay near a branch point, and a NaN or the end within reach; f8e8m0 has
  // no neighbours in this sense
  switch (y.bytes()) {
    case 2: return step_all<std::uint16_t>(seed, y);
    case 4: return step_all<std::uint32_t>(seed, y);
    case 8: return step_all<std::uint64_t>(seed, y);
    default: return;
  }
}

void permutation(std::uint64_t seed, const Tensor& y, Index n) {
  std::vector<std::int64_t> p(static_cast<std::size_t>(std::max<Index>(n, 1)));
  Writer out(y);
  std::uint64_t used = 0;
  for (Index left = y.size(); left > 0;) {
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = p.size() - 1; i > 0; --i) std::swap(p[i], p[below(hash(seed, used++), i + 1)]);
    const Index m = std::min(left, static_cast<Index>(p.size()));
    if (is_int(y.dtype)) {
      out.next(p.data(), m);
    } else {
      const std::vector<double> f(p.begin(), p.end());
      out.next(f.data(), m);
    }
    left -= m;
  }
}

void fill_int(Recipe recipe, std::uint64_t seed, const Tensor& y, double a, double b) {
  const Range r = range(y.dtype);
  const auto between = [&](std::int64_t lo, std::int64_t hi) {
    lo = std::max(lo, r.lo);
    if (hi > 0 && static_cast<std::uint64_t>(hi) > r.hi) hi = static_cast<std::int64_t>(r.hi);
    const auto span = static_cast<std::uint64_t>(hi - lo) + 1;
    blocks<std::int64_t>(seed, y, [lo, span](std::uint64_t h, Index) {
      return lo + static_cast<std::int64_t>(span < (1ull << 31) ? below(h, span) : h % span);
    });
  };
  switch (recipe) {
    case Recipe::small: return between(-8, 8);
    case Recipe::unit: return between(-1, 1);
    case Recipe::ties: return between(-2, 2);
    case Recipe::uniform:
      return between(static_cast<std::int64_t>(std::ceil(a)), static_cast<std::int64_t>(std::ceil(b)) - 1);
    case Recipe::ints: return between(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
    case Recipe::boolean:
    case Recipe::prob: return between(0, 1);
    case Recipe::positive: return between(1, 100);
    case Recipe::iota: return blocks<std::int64_t>(seed, y, [](std::uint64_t, Index i) { return i; });
    case Recipe::full: return patterns(seed, y, [](std::uint64_t h, Index) { return h; });
    case Recipe::all: return patterns(seed, y, [](std::uint64_t, Index i) { return static_cast<std::uint64_t>(i); });
    case Recipe::branch: return branch(seed, y);
    case Recipe::perm: return permutation(seed, y, static_cast<Index>(a));
    case Recipe::shift: return between(0, info(y.dtype).bits - 1);
    case Recipe::nonzero: {
      const bool negative = r.lo < 0;
      const auto top = std::min<std::uint64_t>(r.hi, 8);
      return blocks<std::int64_t>(seed, y, [=](std::uint64_t h, Index) {
        const auto m = static_cast<std::int64_t>(below(h, top)) + 1;
        return negative && (h & 1) ? -m : m;
      });
    }
    case Recipe::wide:
    case Recipe::special: {
      const SpecialBits s = specials(y.dtype);
      const bool mix = recipe == Recipe::special;
      const std::uint64_t signs = r.lo < 0 ? 1 : 0;
      const auto bits = static_cast<std::uint64_t>(info(y.dtype).bits) - signs;
      const bool boolean = is_bool(y.dtype);
      return blocks<std::int64_t>(seed, y, [=, &s](std::uint64_t h, Index) {
        // both of every element: what a choice that cannot be foretold costs is more
        const std::uint64_t special = s.v[below(h << 20, s.count)];
        const std::uint64_t length = below(h, bits + 1);  // 0..bits
        const std::uint64_t low = (h * 0x9e3779b97f4a7c15ull) >> ((64 - length) & 63);
        const std::uint64_t m = length == 0 ? 0 : low;
        const std::uint64_t wide = boolean ? h >> 63 : (h & signs) != 0 ? 0 - m : m;
        return static_cast<std::int64_t>(mix && (h & 6) == 0 ? special : wide);
      });
    }
  }
}

void fill_float(Recipe recipe, std::uint64_t seed, const Tensor& y, double a, double b) {
  const int e = wide_exponent(y.dtype);
  switch (recipe) {
    case Recipe::nonzero:
      return blocks<double>(seed, y, [](std::uint64_t h, Index) {
        const double m = static_cast<double>(static_cast<int>(below(h, 8)) + 1);
        return h & 1 ? -m : m;
      });
    case Recipe::shift:
    case Recipe::small:
      return blocks<double>(seed, y, [](std::uint64_t h, Index) { return static_cast<double>(static_cast<int>(below(h, 17)) - 8); });
    case Recipe::unit: return blocks<double>(seed, y, [](std::uint64_t h, Index) { return fraction(h) * 2.0 - 1.0; });
    case Recipe::ties:
      return blocks<double>(seed, y,
                    [](std::uint64_t h, Index) { return (static_cast<double>(static_cast<int>(below(h, 19))) - 9.0) * 0.5; });
    case Recipe::uniform:
      return blocks<double>(seed, y, [a, b](std::uint64_t h, Index) { return a + fraction(h) * (b - a); });
    case Recipe::ints: {
      const double span = b - a + 1;
      return blocks<double>(seed, y, [a, span](std::uint64_t h, Index) { return a + std::floor(fraction(h) * span); });
    }
    case Recipe::boolean: return blocks<double>(seed, y, [](std::uint64_t h, Index) { return static_cast<double>(h >> 63); });
    case Recipe::positive: {
      const int p = std::min(e, 4);
      return blocks<double>(seed, y, [p](std::uint64_t h, Index) { return log_uniform(h, -p, p); });
    }
    case Recipe::prob:
      return blocks<double>(seed, y, [](std::uint64_t h, Index) {
        return (h & 31) == 0 ? static_cast<double>((h >> 5) & 1) : fraction(h);
      });
    case Recipe::iota: return blocks<double>(seed, y, [](std::uint64_t, Index i) { return static_cast<double>(i); });
    case Recipe::full: return patterns(seed, y, [](std::uint64_t h, Index) { return h; });
    case Recipe::all: return patterns(seed, y, [](std::uint64_t, Index i) { return static_cast<std::uint64_t>(i); });
    case Recipe::branch: return branch(seed, y);
    case Recipe::perm: return permutation(seed, y, static_cast<Index>(a));
    case Recipe::wide:
      return blocks<double>(seed, y, [e](std::uint64_t h, Index) {
        return std::bit_cast<double>(std::bit_cast<std::uint64_t>(log_uniform(h, -e, e)) | sign_of(h));
      });
    case Recipe::special: {
      const SpecialBits s = specials(y.dtype);
      std::array<double, 20> value{};
      const LoadF64 load = load_f64(y.dtype);
      for (std::size_t i = 0; i < s.count; ++i) load(reinterpret_cast<const char*>(&s.v[i]), 8, 1, &value[i]);
      return blocks<double>(seed, y, [e, &value, n = s.count](std::uint64_t h, Index) {
        // all three of every element, as there
        const double special = value[below(h << 20, n)];
        const double small = static_cast<double>(static_cast<int>(below(h, 17)) - 8);
        const double wide = std::bit_cast<double>(std::bit_cast<std::uint64_t>(log_uniform(h, -e, e)) | sign_of(h));
        const double other = h & 8 ? small : wide;
        return (h & 6) == 0 ? special : other;
      });
    }
  }
}

void fill(Recipe recipe, std::uint64_t seed, const Tensor& y, double a, double b) {
  if (info(y.dtype).kind == Kind::complex) {
    Tensor parts = y;  // real and imaginary parts are just twice the elements
    parts.dtype = y.dtype == DType::c64 ? DType::f32 : DType::f64;
    parts.rank = 1;
    parts.shape[0] = 2 * y.size();
    parts.stride[0] = parts.bytes();
    return fill_float(recipe, seed, parts, a, b);
  }
  if (is_float(y.dtype))
    fill_float(recipe, seed, y, a, b);
  else
    fill_int(recipe, seed, y, a, b);
}

}  // namespace

OPCONFORM_TABLE const FillTable opconform_fill{sizeof(FillTable), fill};

}  // namespace opconform
