// Conversion between any two dtypes with one rounding.
#pragma once

#include "native_ref/core/table.h"
#include "native_ref/core/tensor.h"

namespace opconform {

struct ConvertTable {
  std::size_t size;
  // x and y have one shape.  rounding: a Rounding, or -1 for the usual one (nearest even to a float
  // type, toward zero to an integer type).  Float to integer always saturates (NaN gives 0); integer to integer wraps,
  // or saturates when asked; to a float type overflow is inf or NaN, or the largest finite value when asked.
  void (*convert)(const Tensor& x, const Tensor& y, int rounding, bool saturate);
};

}  // namespace opconform
