// Eight numbers of 64 bits side by side, in vectors of the machine's own width: one of 64 bytes, two of 32, four of 16.
// GCC takes a vector wider than the machine's apart, element by element, as soon as it is compared or goes through
// memory.
#pragma once

#include <cstring>
#include <type_traits>

#include "native_ref/core/simd.h"

namespace opconform {

template <class V>
struct Halves {
  V a, b;
};
template <class V>
inline constexpr bool is_halves = false;
template <class V>
inline constexpr bool is_halves<Halves<V>> = true;

template <class T, int N, bool Native = (N * sizeof(T) <= kVectorBytes)>
struct Lanes {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
struct Lanes<T, N, false> {
  using type = Halves<typename Lanes<T, N / 2>::type>;
};
template <class T>
using Eight = typename Lanes<T, 8>::type;

// f of every native vector of v, and the vectors beside it in the others.
template <class F, class V, class... More>
[[gnu::always_inline]] inline auto each(const F& f, V v, More... more) {
  if constexpr (is_halves<V>) {
    auto a = each(f, v.a, more.a...);
    return Halves<decltype(a)>{a, each(f, v.b, more.b...)};
  } else {
    return f(v, more...);
  }
}

template <class V>
[[gnu::always_inline]] inline Halves<V> operator+(Halves<V> x, Halves<V> y) {
  return {x.a + y.a, x.b + y.b};
}
template <class V>
[[gnu::always_inline]] inline Halves<V> operator-(Halves<V> x, Halves<V> y) {
  return {x.a - y.a, x.b - y.b};
}
template <class V>
[[gnu::always_inline]] inline Halves<V> operator*(Halves<V> x, Halves<V> y) {
  return {x.a * y.a, x.b * y.b};
}
template <class V>
[[gnu::always_inline]] inline Halves<V>& operator+=(Halves<V>& x, Halves<V> y) {
  return x = x + y;
}

template <class V, class T>
[[gnu::always_inline]] inline V read(const T* p) {
  if constexpr (is_halves<V>) {
    using H = decltype(V::a);
    return {read<H>(p), read<H>(p + sizeof(H) / sizeof(T))};
  } else {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
}
template <class V, class T>
[[gnu::always_inline]] inline void write(T* p, V v) {
  if constexpr (is_halves<V>) {
    write(p, v.a);
    write(p + sizeof(v.a) / sizeof(T), v.b);
  } else {
    std::memcpy(p, &v, sizeof v);
  }
}

// Eight times the same number, its sign kept where it is a zero ("V{} + x" would not).
template <class V, class T>
[[gnu::always_inline]] inline V all(T x) {
  if constexpr (is_halves<V>)
    return {all<decltype(V::a)>(x), all<decltype(V::a)>(x)};
  else
    return x - V{};
}

// Of native vectors.  mask: all bits of an element or none.
template <class M, class V>
[[gnu::always_inline]] inline V choose(M mask, V a, V b) {
  return reinterpret_cast<V>((mask & reinterpret_cast<M>(a)) | (~mask & reinterpret_cast<M>(b)));
}

// a where a is greater (less), else b: also where one is NaN or both are zeros.
struct Greater {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return each([](auto u, auto v) { return u > v ? u : v; }, a, b);
  }
};
struct Less {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return each([](auto u, auto v) { return u < v ? u : v; }, a, b);
  }
};
struct Plus {
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a + b;
  }
};

// f over the elements of v, halves first.
template <class T, class V, class F>
[[gnu::always_inline]] inline T fold_all(V v, const F& f) {
  if constexpr (is_halves<V>) {
    return fold_all<T>(f(v.a, v.b), f);
  } else if constexpr (sizeof v > 2 * sizeof(T)) {
    typename Lanes<T, sizeof v / sizeof(T) / 2>::type a, b;
    std::memcpy(&a, &v, sizeof a);
    std::memcpy(&b, reinterpret_cast<const char*>(&v) + sizeof a, sizeof b);
    return fold_all<T>(f(a, b), f);
  } else {
    return f(T{v[0]}, T{v[1]});
  }
}

}  // namespace opconform
