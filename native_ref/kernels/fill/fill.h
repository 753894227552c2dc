// Test data from a recipe and a seed: element i depends on (seed, i) alone, the same bits on every machine.
//
// The bits of element i are h(i) = mix(seed * 0x9e3779b97f4a7c15 + (i + 1) * 0xd1342543de82ef95) with splitmix64's mix, so
// that a few lines of NumPy give the same data.  Values are made with exact f64 arithmetic and rounded once.
#pragma once

#include "native_ref/core/table.h"
#include "native_ref/core/tensor.h"

namespace opconform {

enum class Recipe : std::int32_t {
  small,     // integers -8..8, cut to the type's range
  unit,      // [-1, 1); integers -1..1
  wide,      // random sign, log-uniform magnitude 2^-32..2^32 (as far as the type goes); integers of any length
  special,   // one in four: NaN, inf, -0, subnormal, limits; the rest small or wide
  ties,      // halves -4.5..4.5: equal values and rounding ties
  branch,    // within two units in the last place of 0, 0.5, 1, 2, 2.5, 3, 6, 20 and their negatives
  iota,      // 0, 1, 2, ... (integers wrap)
  ints,      // integers a..b
  uniform,   // [a, b)
  boolean,   // 0 or 1
  positive,  // log-uniform 2^-4..2^4; integers 1..100
  prob,      // [0, 1], ends included now and then
  full,      // random bits
  all,       // bit patterns 0, 1, 2, ...: every value of an 8 or 16 bit type
  nonzero,   // integers -8..8 without 0 (1..8 when unsigned)
  shift,     // 0 .. width - 1: counts for bit shifts; floats as small
  perm,      // a permutation of 0..a-1 (repeated afresh after every a elements)
};

struct FillTable {
  std::size_t size;
  // y is C-contiguous
  void (*fill)(Recipe recipe, std::uint64_t seed, const Tensor& y, double a, double b);
};

}  // namespace opconform
