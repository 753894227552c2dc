// Judging a tensor against a high-precision reference in one pass.
//
// An element a passes against the reference w with tolerance t = bound + ulps * ulp(w) when
//   w NaN                 a is NaN
//   w infinite            a is the same infinity, or t is infinite
//   a infinite, w finite  same sign and |w| + t reaches the overflow threshold of the type (also NaN, in a type without inf)
//   both finite           |a - w| <= t;   with signed_zero also: two zeros have one sign;   with flush: a zero stands for a
//                         subnormal w
// Integers are compared as integers: |a - w| <= bound, exactly, whatever their size.
#pragma once

#include "native_ref/core/table.h"
#include "native_ref/core/tensor.h"

namespace opconform {

struct Comparison {
  Index size = 0;
  Index bad = 0;             // elements that do not pass
  Index first = -1;          // flat index of the first bad one
  Index worst = -1;          // of the largest |a - w| / t; a class mismatch (NaN, inf) beats every number
  double max_ulp = 0;        // largest |a - w| / ulp(w); over finite pairs (integers: |a - w|)
  double max_abs = 0;        // largest |a - w| over finite pairs
  double max_ratio = 0;      // largest |a - w| / t: the smallest factor on the tolerance that passes; inf if none does
  Index nan_bad = 0;         // NaN on one side only
  Index inf_bad = 0;         // infinity on one side only, or of the other sign
  Index zero_sign = 0;       // +0 against -0 (bad only with signed_zero)
  Index flushed = 0;         // zero against a subnormal (bad unless flush, or within t)
  Index uninformative = 0;   // finite w, t > |w| / 10
  Index zeros = 0;           // w == 0
};

struct CompareOptions {
  double ulps = 0;
  bool signed_zero = false;
  bool flush = false;
};

// What a passing output is worth: some of it may be uninformative (MOST), all of it of one kind (DULL), unless it has only a
// few elements (SMALL).
inline constexpr double kMost = 0.5, kDull = 0.9;
inline constexpr Index kSmall = 32;

// Which tensor judges, and what a pass has to be worth.
enum class Judging : std::int32_t {
  value = 1,  // the rounded reference
  ulps,       // the wide one within ulps, not mostly uninformative; where there is none, the rounded one within them
  varied      // the wide one within ulps, not dull; where there is none, the rounded one
};
enum class Brief : std::int32_t { open = 0, agrees, says_nothing };

struct CompareTable {
  std::size_t size;
  // a: the judged tensor; w: the reference, f64 or a's type; bound: f64, all expanded to one shape.
  // mask (bool) and ulp (f64), where not null, are C-contiguous and get one entry an element.
  void (*compare)(const Tensor& a, const Tensor& w, const Tensor& bound, const CompareOptions& o, Comparison& out,
                  std::uint8_t* mask, double* ulp);
  // One look that settles most outputs: open where anything is left to decide.  value: the rounded reference, of a's type and
  // shape; wide: f64 or null.  Integers, bools and floats.
  Brief (*brief)(const Tensor& a, const Tensor& value, const Tensor* wide, Judging how, const CompareOptions& o);
  // y: f64; distance in representable values, counted through zero; NaN against NaN is 0, against a number inf
  void (*ulp_diff)(const Tensor& a, const Tensor& b, const Tensor& y);
};

}  // namespace opconform
