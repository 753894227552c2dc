// What a reduction does with a block of elements.  Every accumulator comes twice:
//   Single: one result, a block is folded into sixteen lanes (element i of a block into lane i mod 16);
//   Block:  n results side by side, element i of a block belongs to result i.
// One with lanes has an element that leaves every lane as it is, `neutral`, to fill rows up with; without, elements are
// taken one after the other, and it does not matter how they come in blocks.  `count`: the number of elements of a result.
// Results are made by functions of Single and Block, or by static ones of the accumulator where several share those.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "native_ref/core/block.h"
#include "native_ref/core/eight.h"

namespace opconform::reducing {

inline constexpr Index kLanes = 16;

// Two of them are the sixteen lanes.  Written out, since loops over a struct's members stay scalar.
using V8 = Eight<double>;
inline V8 load8(const double* p) { return read<V8>(p); }

// Value plus the sum of the rounding errors made so far; NaN or infinity in hi decides alone.
struct Pair {
  double hi, lo;
  double value() const { return std::isfinite(hi) ? hi + lo : hi; }
};

template <class T>
inline void add_to(T& hi, T& lo, T v) {
  const T t = hi + v, z = t - hi;
  lo += (hi - (t - z)) + (v - z);
  hi = t;
}

struct Identity {
  static double main(double v) { return v; }
  static V8 main8(V8 v) { return v; }
  static double rest(double, double) { return 0; }
  static constexpr bool has_rest = false;
  static constexpr bool short_rows = true;  // see rows.h
};
struct Magnitude : Identity {
  static double main(double v) { return std::abs(v); }
  static V8 main8(V8 v) {
    return each([]<class V>(V x) { return reinterpret_cast<V>(reinterpret_cast<decltype(x < x)>(x) & kMagnitude); }, v);
  }
  static constexpr std::int64_t kMagnitude = 0x7fffffffffffffff;
};
struct Square {
  static double main(double v) { return v * v; }
  static V8 main8(V8 v) { return v * v; }
  static double rest(double v, double p) { return std::fma(v, v, -p); }
  static constexpr bool has_rest = true;  // f64 squares are rounded
  static constexpr bool short_rows = false;
};
struct ExactSquare : Square {  // of values with few bits
  static constexpr bool has_rest = false;
};

// What is made of the sum (n: number of elements).
struct Plain {
  static double of(Pair s, double) { return s.value(); }
};
struct MeanOf {
  static double of(Pair s, double n) {
    const double q = s.hi / n;
    if (!std::isfinite(q)) return q;
    return q + (std::fma(-q, n, s.hi) + s.lo) / n;
  }
};
struct RootOf {
  static double of(Pair s, double) {
    const double q = std::sqrt(s.value());
    if (!std::isfinite(q) || q == 0) return q;
    return q + (std::fma(-q, q, s.hi) + s.lo) / (2 * q);
  }
};
struct LogOf {
  static double of(Pair s, double) { return std::log(s.value()); }
};

// A sum in the making, compiled once for all that may be made of it.
template <class Map>
struct Summands {
  struct Single {
    static constexpr bool in_registers = !Map::has_rest;
    double hi[kLanes] = {}, lo[kLanes] = {};
    void one(Index l, double v) {
      const double m = Map::main(v);
      if constexpr (Map::has_rest) lo[l] += Map::rest(v, m);
      add_to(hi[l], lo[l], m);
    }
    void add(const double* x, Index n) {
      Index i = 0;
      if constexpr (!Map::has_rest) {
        V8 h0 = load8(hi), h1 = load8(hi + 8), l0 = load8(lo), l1 = load8(lo + 8);
        for (; i + kLanes <= n; i += kLanes) {
          add_to(h0, l0, Map::main8(load8(x + i)));
          add_to(h1, l1, Map::main8(load8(x + i + 8)));
        }
        write(hi, h0), write(hi + 8, h1), write(lo, l0), write(lo + 8, l1);
      } else {
        for (; i + kLanes <= n; i += kLanes)
          for (Index l = 0; l < kLanes; ++l) one(l, x[i + l]);
      }
      for (Index l = 0; i + l < n; ++l) one(l, x[i + l]);
    }
    [[gnu::noinline]] Pair total() const {
      Pair s{0, 0};
      for (Index l = 0; l < kLanes; ++l) {
        add_to(s.hi, s.lo, hi[l]);
        s.lo += lo[l];
      }
      return s;
    }
  };
  struct Block {
    double hi[kBlock], lo[kBlock];
    void reset(Index n) {
      for (Index i = 0; i < n; ++i) hi[i] = lo[i] = 0;
    }
    void add(const double* x, Index n) {
      Index i = 0;
      if constexpr (!Map::has_rest)
        for (; i + 8 <= n; i += 8) {
          V8 h = load8(hi + i), l = load8(lo + i);
          add_to(h, l, Map::main8(load8(x + i)));
          write(hi + i, h), write(lo + i, l);
        }
      for (; i < n; ++i) {
        const double m = Map::main(x[i]);
        if constexpr (Map::has_rest) lo[i] += Map::rest(x[i], m);
        add_to(hi[i], lo[i], m);
      }
    }
  };
};

template <class Map, class Finish = Plain>
struct Sum {
  using Value = double;
  using Single = typename Summands<Map>::Single;
  using Block = typename Summands<Map>::Block;
  static constexpr double neutral() { return 0; }
  static double result(const Single& s, Index count) { return Finish::of(s.total(), static_cast<double>(count)); }
  static void results(const Block& b, double* y, Index n, Index count) {
    for (Index i = 0; i < n; ++i) y[i] = Finish::of({b.hi[i], b.lo[i]}, static_cast<double>(count));
  }
};

// Runs Single logic per element column: for reductions that are rare enough not to need a block form of their own.
template <class S>
struct Columns {
  S cell[kBlock];
  void reset(Index n) {
    for (Index i = 0; i < n; ++i) cell[i] = S{};
  }
  void add(const typename S::Value* x, Index n) {
    for (Index i = 0; i < n; ++i) cell[i].add(x + i, 1);
  }
  void result(typename S::Value* y, Index n, Index) const {
    for (Index i = 0; i < n; ++i) y[i] = cell[i].result(0);
  }
};

// Product as mantissa pair and exponent, so that no order of factors overflows on the way.
struct Product {
  using Value = double;
  struct Single {
    using Value = double;
    double hi = 1, lo = 0;
    std::int64_t exponent = 0;
    void add(const double* x, Index n) {
      for (Index i = 0; i < n; ++i) {
        int e = 0;
        const double f = std::frexp(x[i], &e);  // inf and NaN come back as they are
        const double p = hi * f;
        lo = std::fma(hi, f, -p) + lo * f;
        hi = p;
        exponent += std::isfinite(x[i]) ? e : 0;
        if (std::abs(hi) < 0.0625) {
          hi *= 16;
          lo *= 16;
          exponent -= 4;
        }
      }
    }
    double result(Index) const {
      if (!std::isfinite(hi) || hi == 0) return hi;
      const auto e = static_cast<int>(exponent < -5000 ? -5000 : exponent > 5000 ? 5000 : exponent);
      return std::ldexp(hi + lo, e);
    }
  };
  using Block = Columns<Single>;
};

template <class T, bool Max>
struct Extreme {
  using Value = std::conditional_t<std::is_same_v<T, double>, double, std::int64_t>;
  static constexpr Value neutral() { return static_cast<Value>(start()); }
  static constexpr T start() {
    if constexpr (std::is_same_v<T, double>)
      return Max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    else
      return Max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  // NaN stays once met; max(-0, +0) is +0 in any order.
  static T pick(T a, T b) {
    if constexpr (std::is_same_v<T, double>) {
      if (a == b) return Max ? (std::signbit(a) ? b : a) : (std::signbit(a) ? a : b);
      const T r = (Max ? a > b : a < b) ? a : b;
      return a != a ? a : r;
    } else {
      return (Max ? a > b : a < b) ? a : b;
    }
  }
  // the same on eight; equal operands differ at most in the sign of zero, which one bit operation settles
  static V8 pick8(V8 a, V8 b) {
    return each(
        []<class V>(V u, V v) {
          using M = decltype(u == v);
          const M x = reinterpret_cast<M>(u), y = reinterpret_cast<M>(v);
          const V r = choose((Max ? u > v : u < v) | (u != u), u, v);
          return choose(u == v, reinterpret_cast<V>(Max ? x & y : x | y), r);
        },
        a, b);
  }
  struct Single {
    T lane[kLanes];
    Single() {
      for (T& l : lane) l = start();
    }
    void add(const Value* x, Index n) {
      Index i = 0;
      if constexpr (std::is_same_v<T, double>) {
        if (!plainly(x, n)) {
          V8 a = load8(lane), b = load8(lane + 8);
          for (; i + kLanes <= n; i += kLanes) {
            a = pick8(a, load8(x + i));
            b = pick8(b, load8(x + i + 8));
          }
          write(lane, a), write(lane + 8, b);
        }
        i = n / kLanes * kLanes;
      }
      for (; i + kLanes <= n; i += kLanes)
        for (Index l = 0; l < kLanes; ++l) lane[l] = pick(lane[l], static_cast<T>(x[i + l]));
      for (Index l = 0; i + l < n; ++l) lane[l] = pick(lane[l], static_cast<T>(x[i + l]));
    }
    // Whole rows of lanes, where neither a NaN nor the sign of a zero has to be looked at; else nothing happens.
    bool plainly(const double* x, Index n) {
      constexpr std::conditional_t<Max, Greater, Less> take;
      V8 a = load8(lane), b = load8(lane + 8), sum = a + b;  // a NaN stays in it
      for (Index i = 0; i + kLanes <= n; i += kLanes) {
        const V8 u = load8(x + i), v = load8(x + i + 8);
        a = take(a, u);
        b = take(b, v);
        sum += u + v;
      }
      double top[kLanes];
      write(top, a), write(top + 8, b);
      const double s = fold_all<double>(sum, Plus{});
      bool plain = s == s;
      for (const double t : top) plain &= t != 0;
      if (plain) std::memcpy(lane, top, sizeof top);
      return plain;
    }
    Value result(Index) const {
      T r = lane[0];
      for (Index l = 1; l < kLanes; ++l) r = pick(r, lane[l]);
      return static_cast<Value>(r);
    }
  };
  struct Block {
    T cell[kBlock];
    void reset(Index n) {
      for (Index i = 0; i < n; ++i) cell[i] = start();
    }
    void add(const Value* x, Index n) {
      Index i = 0;
      if constexpr (std::is_same_v<T, double>)
        for (; i + 8 <= n; i += 8) write(cell + i, pick8(load8(cell + i), load8(x + i)));
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
      for (; i < n; ++i) cell[i] = pick(cell[i], static_cast<T>(x[i]));
    }
    void result(Value* y, Index n, Index) const {
      for (Index i = 0; i < n; ++i) y[i] = static_cast<Value>(cell[i]);
    }
  };
};

// max + log(sum(exp(x - max))), the maximum renewed as it grows; an infinite maximum is the result itself.
struct LogSumExp {
  using Value = double;
  struct Single {
    using Value = double;
    double top = -std::numeric_limits<double>::infinity();
    Pair sum{0, 0};
    void add(const double* x, Index n) {
      for (Index i = 0; i < n; ++i) {
        if (x[i] > top || x[i] != x[i]) {
          const double scale = top == -std::numeric_limits<double>::infinity() ? 0 : std::exp(top - x[i]);
          sum.hi *= scale;
          sum.lo *= scale;
          top = top != top ? top : x[i];
        }
        if (std::isfinite(top)) add_to(sum.hi, sum.lo, std::exp(x[i] - top));
      }
    }
    double result(Index) const { return std::isfinite(top) ? top + std::log(sum.value()) : top; }
  };
  using Block = Columns<Single>;
};

// Modulo 2^64.  Map 0: the value, 1: its square, 2: its magnitude.
template <int Map>
struct WrapSum {
  using Value = std::int64_t;
  static constexpr Value neutral() { return 0; }
  static std::uint64_t of(std::int64_t v) {
    const auto u = static_cast<std::uint64_t>(v);
    return Map == 1 ? u * u : Map == 2 && v < 0 ? 0 - u : u;
  }
  struct Single {
    std::uint64_t lane[kLanes] = {};
    void add(const Value* x, Index n) {
      Index i = 0;
      for (; i + kLanes <= n; i += kLanes)
        for (Index l = 0; l < kLanes; ++l) lane[l] += of(x[i + l]);
      for (; i < n; ++i) lane[0] += of(x[i]);
    }
    Value result(Index) const {
      std::uint64_t s = 0;
      for (std::uint64_t l : lane) s += l;
      return static_cast<Value>(s);
    }
  };
  struct Block {
    std::uint64_t cell[kBlock];
    void reset(Index n) {
      for (Index i = 0; i < n; ++i) cell[i] = 0;
    }
    void add(const Value* x, Index n) {
      for (Index i = 0; i < n; ++i) cell[i] += of(x[i]);
    }
    void result(Value* y, Index n, Index) const {
      for (Index i = 0; i < n; ++i) y[i] = static_cast<Value>(cell[i]);
    }
  };
};

struct WrapProduct {
  using Value = std::int64_t;
  struct Single {
    using Value = std::int64_t;
    std::uint64_t p = 1;
    void add(const Value* x, Index n) {
      for (Index i = 0; i < n; ++i) p *= static_cast<std::uint64_t>(x[i]);
    }
    Value result(Index) const { return static_cast<Value>(p); }
  };
  using Block = Columns<Single>;
};

template <bool Any>
struct Truth {
  using Value = std::int64_t;
  struct Single {
    using Value = std::int64_t;
    bool v = !Any;
    void add(const Value* x, Index n) {
      std::uint64_t met = 0;  // what decides
      for (Index i = 0; i < n; ++i) met |= (x[i] != 0) == Any;
      v = met ? Any : v;
    }
    Value result(Index) const { return v; }
  };
  using Block = Columns<Single>;
};

}  // namespace opconform::reducing
