// An accumulator behind pointers, so that the walk over a tensor is compiled once for all of them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "native_ref/kernels/reduce/reduce.h"
#include "native_ref/kernels/reduce/rows.h"

namespace opconform::reducing {

// Room for one Single or one Block, and half a page more, so that what lies behind it does not fall on the same cache
// lines.
struct alignas(64) State {
  std::byte bytes[kBlock * 24 + 2048];
  template <class S>
  S* as() {
    return std::launder(reinterpret_cast<S*>(bytes));
  }
};
// Elements are doubles or std::int64_t, which the functions know and the walk need not.
inline constexpr Index kWord = 8;
struct Cells {
  bool floats;
  bool screened;  // whether ``rows`` asks for exactness
  bool lanes;
  std::uint64_t neutral;  // its bits
  // `count` rows of `run` elements each, one after the other
  void (*rows)(const void* x, Index run, Index count, bool exact, void* y);
  // one result
  void (*start)(State&);
  void (*add)(State&, const void* x, Index n);
  void (*result)(State&, Index count, void* y);
  // n results side by side
  void (*reset)(State&, Index n);
  void (*add_rows)(State&, const void* x, Index n, Index rows);
  void (*results)(State&, void* y, Index n, Index count);
};

// The parts of it; those that depend on Single or Block alone are shared by all accumulators that have the same.
template <class Acc>
typename Acc::Value result_of(const typename Acc::Single& s, Index count) {
  if constexpr (requires { Acc::result(s, count); })
    return Acc::result(s, count);
  else
    return s.result(count);
}
template <class Acc>
void short_rows(const void* from, Index run, Index count, [[maybe_unused]] bool exact, void* to) {
  const auto* x = static_cast<const typename Acc::Value*>(from);
  auto* y = static_cast<typename Acc::Value*>(to);
  for (Index r = 0; r < count; ++r, x += run) {
    if constexpr (has_row<Acc>)
      if (Row<Acc>::fold(x, run, exact, y[r])) continue;
    typename Acc::Single acc;
    acc.add(x, run);
    y[r] = result_of<Acc>(acc, run);
  }
}
template <class Map, class Finish>
void short_sums(const void* from, Index run, Index count, bool exact, void* to) {
  auto* y = static_cast<double*>(to);
  Pair sums[kBlock];
  RowSums<Map>::of(static_cast<const double*>(from), run, count, exact, sums);
  for (Index r = 0; r < count; ++r) y[r] = Finish::of(sums[r], static_cast<double>(run));
}
template <class Acc>
inline constexpr auto rows_of = short_rows<Acc>;
template <class Map, class Finish>
inline constexpr auto rows_of<Sum<Map, Finish>> = short_sums<Map, Finish>;
template <class Single>
void start(State& s) {
  new (s.bytes) Single;
}
template <class Single, class T>
void add(State& s, const void* from, Index n) {
  const auto* x = static_cast<const T*>(from);
  if constexpr (requires { requires Single::in_registers; }) return s.as<Single>()->add(x, n);
  Single local = *s.as<Single>();  // which x cannot overlap
  local.add(x, n);
  *s.as<Single>() = local;
}
template <class Block>
void reset(State& s, Index n) {
  s.as<Block>()->reset(n);
}
template <class Block, class T>
void add_rows(State& s, const void* from, Index n, Index rows) {
  const auto* x = static_cast<const T*>(from);
  for (; rows > 0; --rows, x += n) s.as<Block>()->add(x, n);
}

template <class Acc>
constexpr Cells cells() {
  using T = typename Acc::Value;
  using Single = typename Acc::Single;
  using Block = typename Acc::Block;
  static_assert(sizeof(T) == kWord && sizeof(Single) <= sizeof(State) && sizeof(Block) <= sizeof(State));
  static_assert(std::is_trivially_destructible_v<Single> && std::is_trivially_destructible_v<Block>);
  bool screened = false, lanes = false;
  T neutral{};
  if constexpr (has_row<Acc>) screened = Row<Acc>::screened;
  if constexpr (requires { Acc::neutral(); }) lanes = true, neutral = Acc::neutral();
  return {
      std::is_same_v<T, double>,
      screened,
      lanes,
      std::bit_cast<std::uint64_t>(neutral),
      rows_of<Acc>,
      start<Single>,
      add<Single, T>,
      [](State& s, Index count, void* y) { *static_cast<T*>(y) = result_of<Acc>(*s.as<Single>(), count); },
      reset<Block>,
      add_rows<Block, T>,
      [](State& s, void* to, Index n, Index count) {
        auto* y = static_cast<T*>(to);
        if constexpr (requires { Acc::results(*s.as<Block>(), y, n, count); })
          Acc::results(*s.as<Block>(), y, n, count);
        else
          s.as<Block>()->result(y, n, count);
      },
  };
}

template <class Acc>
const Cells& cells_of() {
  static constexpr Cells kCells = cells<Acc>();
  return kCells;
}

// narrow: of a float type with so few bits that its squares are exact in f64.
const Cells& float_cells(Reduction op, bool narrow);
const Cells& int_cells(Reduction op, bool is_unsigned);

}  // namespace opconform::reducing
