// Functors to block loops to table rows.
#pragma once

#include <type_traits>

#include "native_ref/core/block.h"
#include "native_ref/kernels/elementwise/elementwise.h"
#include "native_ref/kernels/elementwise/pack.h"

namespace opconform {

// A functor is a struct with a name and some of:
//   static double f(double x)  or  f(double x, const double* p)   with  static constexpr int params
//   static std::int64_t s(std::int64_t)          signed integers
//   static std::uint64_t u(std::uint64_t)        unsigned integers
//   static void rows(double*, Index, const double*)   f on a whole block, where an instruction set has a better way
//   static bool rows(const float*, float*, Index)     a block of f32, as f and a rounding; false: f has to do it
//   static float exact(float, const float* p)         what f and a rounding to f32 give where p[] holds numbers of f32
//   static bool hard(double), static double slow(double)   where f is not good enough, and what is
//   static constexpr bool to_bool = true         results are 0 or 1 and stored as bool
template <class Op>
void unary_f(double* x, Index n, const double* p) {
  (void)p;
  if constexpr (requires { Op::rows(x, n, p); }) return Op::rows(x, n, p);
  if constexpr (requires { Op::hard(0.0); }) {
    // f is only good on easy arguments: look for the others, and redo them one by one
    std::int64_t any = 0;
    for (Index i = 0; i < n; ++i) any |= Op::hard(x[i]);
    if (any) {
      double kept[kBlock];
      for (Index i = 0; i < n; ++i) kept[i] = x[i];
      for (Index i = 0; i < n; ++i) x[i] = Op::f(x[i]);
      for (Index i = 0; i < n; ++i)
        if (Op::hard(kept[i])) x[i] = Op::slow(kept[i]);
      return;
    }
  }
  if constexpr (requires { Op::f(0.0, p); }) {
    const double q[4] = {p[0], p[1], p[2], p[3]};
    for (Index i = 0; i < n; ++i) x[i] = Op::f(x[i], q);
  } else {
    for (Index i = 0; i < n; ++i) x[i] = Op::f(x[i]);
  }
}
template <class Op>
constexpr int params() {
  if constexpr (requires { Op::params; })
    return Op::params;
  else
    return 0;
}
template <class Op>
bool unary_direct(const float* __restrict x, float* __restrict y, Index n, const double* p) {
  (void)p;
  if constexpr (requires { Op::rows(x, y, n); }) {
    return Op::rows(x, y, n);
  } else {
    float q[4]{};
    for (int i = 0; i < params<Op>(); ++i) {
      q[i] = static_cast<float>(p[i]);
      if (!(q[i] == p[i])) return false;
    }
    Index i = 0;
#if defined(OPCONFORM_PACKS)
    if constexpr (requires { Op::packs; }) i = math::packs(x, y, n, [](const math::Pack& v) { return Op::f(v); });
#endif
    for (; i < n; ++i) y[i] = Op::exact(x[i], q);
    return true;
  }
}
// f64 results from f64 inputs, where the functor takes other types than double
template <class Op>
void unary_wide(double* x, Index n, const double* p) {
  (void)p;
  for (Index i = 0; i < n; ++i) {
    if constexpr (requires { Op::f(0.0L, p); })
      x[i] = static_cast<double>(Op::f(static_cast<long double>(x[i]), p));
    else
      x[i] = static_cast<double>(Op::f(static_cast<long double>(x[i])));
  }
}
// Does Op::f take a long double without narrowing it?
template <class Op>
constexpr bool takes_wide() {
  if constexpr (requires(const double* p) { Op::f(0.0L, p); })
    return std::is_same_v<decltype(Op::f(0.0L, static_cast<const double*>(nullptr))), long double>;
  else if constexpr (requires { Op::f(0.0L); })
    return std::is_same_v<decltype(Op::f(0.0L)), long double>;
  else
    return false;
}
template <class Op>
void unary_s(std::int64_t* x, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = Op::s(x[i]);
}
template <class Op>
void unary_u(std::int64_t* x, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = static_cast<std::int64_t>(Op::u(static_cast<std::uint64_t>(x[i])));
}

template <class Op>
constexpr bool gives_bool() {
  if constexpr (requires { Op::to_bool; })
    return Op::to_bool;
  else
    return false;
}

template <class Op>
constexpr UnaryEntry unary_entry() {
  UnaryEntry e{Op::name, 0, gives_bool<Op>(), nullptr, nullptr, nullptr, nullptr, nullptr};
  if constexpr (requires(const float* x, float* y) { Op::rows(x, y, Index{}); } ||
                requires(const float* q) { Op::exact(0.0f, q); })
    e.direct = unary_direct<Op>;
  if constexpr (takes_wide<Op>()) e.wide = unary_wide<Op>;
  e.params = params<Op>();
  if constexpr (requires(const double* p) { Op::f(0.0, p); } || requires { Op::f(0.0); }) e.f = unary_f<Op>;
  if constexpr (requires { Op::s(std::int64_t{}); }) e.s = unary_s<Op>;
  if constexpr (requires { Op::u(std::uint64_t{}); }) e.u = unary_u<Op>;
  return e;
}

// Binary functors: f(double, double), s(int64, int64[, bits]), u(uint64, uint64[, bits]).
//   static float exact(float, float)     what f and a rounding to f32 give, or bool
//   static double slow(double, double)   what f is where it gives NaN, and on 64-bit operands
template <class Op>
void binary_slow(double* x, const double* y, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = Op::slow(x[i], y[i]);
}
template <class Op>
void binary_f(double* x, const double* y, Index n) {
  if constexpr (requires { Op::slow(0.0, 0.0); }) {
    double kept[kBlock];
    std::int64_t any = 0;
    for (Index i = 0; i < n; ++i) {
      kept[i] = x[i];
      x[i] = Op::f(x[i], y[i]);
      any |= x[i] != x[i];
    }
    if (any)
      for (Index i = 0; i < n; ++i)
        if (x[i] != x[i]) x[i] = Op::slow(kept[i], y[i]);
    return;
  }
  for (Index i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<decltype(Op::f(0.0, 0.0)), bool>)
      x[i] = Op::f(x[i], y[i]) ? 1.0 : 0.0;  // a choice vectorises, a conversion from bool does not
    else
      x[i] = Op::f(x[i], y[i]);
  }
}
template <class Op>
void binary_direct(const float* __restrict x, const float* __restrict y, void* __restrict z, Index n) {
  using To = std::conditional_t<gives_bool<Op>(), std::uint8_t, float>;
  auto* to = static_cast<To*>(z);
  Index i = 0;
#if defined(OPCONFORM_PACKS)
  if constexpr (requires { Op::packs; })
    for (; i + math::Pack::size <= n; i += math::Pack::size) {
      const math::Pack v = Op::f(math::read(x + i), math::read(y + i));
      math::write(to + i, v);
      if (!math::any_nan(v)) continue;
      for (Index k = i; k < i + math::Pack::size; ++k)
        if (to[k] != to[k]) to[k] = Op::exact(x[k], y[k]);
    }
#endif
  for (; i < n; ++i) to[i] = Op::exact(x[i], y[i]);
}
template <class Op>
void binary_s(std::int64_t* x, const std::int64_t* y, Index n, int bits) {
  (void)bits;
  for (Index i = 0; i < n; ++i) {
    if constexpr (requires { Op::s(x[i], y[i], bits); })
      x[i] = static_cast<std::int64_t>(Op::s(x[i], y[i], bits));
    else
      x[i] = static_cast<std::int64_t>(Op::s(x[i], y[i]));
  }
}
template <class Op>
void binary_u(std::int64_t* x, const std::int64_t* y, Index n, int bits) {
  (void)bits;
  for (Index i = 0; i < n; ++i) {
    const auto a = static_cast<std::uint64_t>(x[i]), b = static_cast<std::uint64_t>(y[i]);
    if constexpr (requires { Op::u(a, b, bits); })
      x[i] = static_cast<std::int64_t>(Op::u(a, b, bits));
    else
      x[i] = static_cast<std::int64_t>(Op::u(a, b));
  }
}

template <class Op>
constexpr BinaryEntry binary_entry() {
  BinaryEntry e{Op::name, gives_bool<Op>(), nullptr, nullptr, nullptr, nullptr, nullptr};
  if constexpr (requires { Op::exact(0.0f, 0.0f); }) e.direct = binary_direct<Op>;
  if constexpr (requires { Op::f(0.0, 0.0); }) e.f = binary_f<Op>;
  if constexpr (requires { Op::slow(0.0, 0.0); }) e.wide = binary_slow<Op>;
  if constexpr (requires { Op::s(std::int64_t{}, std::int64_t{}); } ||
                requires { Op::s(std::int64_t{}, std::int64_t{}, 8); })
    e.s = binary_s<Op>;
  if constexpr (requires { Op::u(std::uint64_t{}, std::uint64_t{}); } ||
                requires { Op::u(std::uint64_t{}, std::uint64_t{}, 8); })
    e.u = binary_u<Op>;
  return e;
}

template <class... Ops>
struct List {};

template <class... Ops>
constexpr auto unary_table(List<Ops...>) {
  return std::array<UnaryEntry, sizeof...(Ops)>{unary_entry<Ops>()...};
}
template <class... Ops>
constexpr auto binary_table(List<Ops...>) {
  return std::array<BinaryEntry, sizeof...(Ops)>{binary_entry<Ops>()...};
}

}  // namespace opconform
