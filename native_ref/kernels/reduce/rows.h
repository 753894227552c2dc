// Short rows, many of them: one vector per row folded to its end, without the lanes of accumulate.h that a row would have to
// set up and take down.  A fold says when a row needs the careful way after all.
#pragma once

#include <bit>

#include "native_ref/kernels/reduce/accumulate.h"

namespace opconform::reducing {

// Whether sums of up to kBlock elements are exact in f64 in every order, so that no error has to be carried: from the type
// alone, or from the exponents that stand in memory.
class Exact {
 public:
  // rows of n elements, `step` bytes apart
  Exact(DType d, Index step, Index n) : bytes_(info(d).bytes), plain_(step == bytes_) {
    for (Index m = 1; m < n; m *= 2) ++levels_;
    switch (d) {
      case DType::f64:
      case DType::i64:
      case DType::u64:
      case DType::f8e8m0: how_ = How::never; break;
      case DType::f32:
      case DType::bf16: how_ = plain_ ? How::look : How::never; break;
      default: how_ = How::always;  // at most 32 bits between the highest and the lowest
    }
  }
  // count elements from `p` on, of whole rows
  bool operator()(const char* p, Index count) const {
    if (how_ != How::look) return how_ == How::always;
    // an f32 is a multiple of 2^(its exponent - 23), a bf16 of 2^(exponent - 7)
    return bytes_ == 4 ? near<std::uint32_t, 24>(p, count, 29 - levels_) : near<std::uint16_t, 8>(p, count, 45 - levels_);
  }

 private:
  enum class How { never, look, always };
  // Do the exponents of all but zeros lie within `gap`?  The words without their sign, so that the exponent stands on top.
  template <class W, int Shift>
  static bool near(const char* p, Index count, int gap) {
    W top = 0, low = std::numeric_limits<W>::max();
    for (Index i = 0; i < count; ++i) {
      W w;
      std::memcpy(&w, p + i * static_cast<Index>(sizeof w), sizeof w);
      w = static_cast<W>(w << 1);
      const W less = static_cast<W>(w - 1);  // a zero becomes the highest word
      top = w > top ? w : top;
      low = less < low ? less : low;
    }
    const int high = top >> Shift, least = static_cast<W>(low + 1) >> Shift;
    return high < 255 && high - (least > 0 ? least : 1) <= gap;
  }
  Index bytes_;
  bool plain_;
  int levels_ = 0;
  How how_;
};

// static bool fold(row, n, exact, result): false where the row needs the accumulator.
template <class Acc>
struct Row;

template <class Map, class Finish>
struct Row<Sum<Map, Finish>> {
  static constexpr bool screened = Map::short_rows;
};

// Sums of `count` rows, before anything is made of them.
template <class Map>
struct RowSums {
  [[gnu::noinline]] static void of(const double* x, Index run, Index count, bool exact, Pair* y) {
    for (Index r = 0; r < count; ++r, x += run) {
      if constexpr (Map::short_rows)
        if (exact) {
          y[r] = {plain(x, run), 0};
          continue;
        }
      typename Summands<Map>::Single acc;
      acc.add(x, run);
      y[r] = acc.total();
    }
  }

 private:
  static double plain(const double* x, Index n) {
    V8 a = {}, b = {};
    Index i = 0;
    for (; i + 16 <= n; i += 16) {
      a += Map::main8(load8(x + i));
      b += Map::main8(load8(x + i + 8));
    }
    if (i + 8 <= n) a += Map::main8(load8(x + i)), i += 8;
    double s = fold_all<double>(a + b, Plus{});
    for (; i < n; ++i) s += Map::main(x[i]);
    return s;
  }
};

template <bool Max>
struct Row<Extreme<double, Max>> {
  static constexpr bool screened = false;
  static bool fold(const double* x, Index n, bool, double& y) {
    constexpr std::conditional_t<Max, Greater, Less> pick;
    constexpr double start = Extreme<double, Max>::start();
    V8 a = all<V8>(start), b = a, s = {};
    Index i = 0;
    for (; i + 16 <= n; i += 16) {
      const V8 u = load8(x + i), v = load8(x + i + 8);
      a = pick(a, u);
      b = pick(b, v);
      s += u + v;
    }
    if (i + 8 <= n) {
      const V8 u = load8(x + i);
      a = pick(a, u);
      s += u;
      i += 8;
    }
    double r = fold_all<double>(pick(a, b), pick), t = fold_all<double>(s, Plus{});
    for (; i < n; ++i) r = pick(r, x[i]), t += x[i];
    y = r;
    return t == t && r != 0;  // a NaN, or infinities of both signs, are in the sum; zeros have a sign to be looked at
  }
};

template <class T, bool Max>
  requires(!std::is_same_v<T, double>)
struct Row<Extreme<T, Max>> {
  static constexpr bool screened = false;
  static bool fold(const std::int64_t* x, Index n, bool, std::int64_t& y) {
    using V = Eight<T>;
    constexpr std::conditional_t<Max, Greater, Less> pick;
    V a = all<V>(Extreme<T, Max>::start());
    Index i = 0;
    for (; i + 8 <= n; i += 8) a = pick(a, read<V>(x + i));
    T r = fold_all<T>(a, pick);
    for (; i < n; ++i) r = pick(r, static_cast<T>(x[i]));
    y = static_cast<std::int64_t>(r);
    return true;
  }
};

template <>
struct Row<WrapSum<0>> {
  static constexpr bool screened = false;
  static bool fold(const std::int64_t* x, Index n, bool, std::int64_t& y) {
    using V = Eight<std::uint64_t>;
    V a = {};
    Index i = 0;
    for (; i + 8 <= n; i += 8) a += read<V>(x + i);
    std::uint64_t s = fold_all<std::uint64_t>(a, Plus{});
    for (; i < n; ++i) s += static_cast<std::uint64_t>(x[i]);
    y = static_cast<std::int64_t>(s);
    return true;
  }
};

template <class Acc>
concept has_row = requires { Row<Acc>::screened; };

}  // namespace opconform::reducing
