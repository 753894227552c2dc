// Reductions over any set of axes, arg-max, and running sums, of any dtype.
//
// Floats are summed with the rounding error of every addition kept (TwoSum), in sixteen fixed lanes, so that the f64
// result is the correctly rounded one for all but absurd cancellation and has the same bits on every machine.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

enum class Reduction : std::int32_t {
  sum = 0, mean, prod, max, min, sum_square, l1, l2, log_sum, log_sum_exp, any, all,
};

struct ReduceTable {
  std::size_t size;
  // out: C-contiguous, the kept axes in order (keepdims is the caller's reshape).  axes: bit i set = axis i is reduced.
  // Float x: out any float dtype, one rounding.  Integer and bool x: out i64 or u64 patterns, exact modulo 2^64; mean,
  // l2, log_sum, log_sum_exp of integers are computed in f64 and need a float out.
  void (*reduce)(Reduction op, const Tensor& x, std::uint32_t axes, const Tensor& out);
  // Running sum (or product) along one axis, out of x's shape; f64 for floats, i64 patterns for integers.
  void (*cumulate)(bool product, const Tensor& x, int axis, bool exclusive, bool reverse, const Tensor& out);
};

}  // namespace opconform
