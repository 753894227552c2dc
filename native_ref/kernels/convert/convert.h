// Conversion between any two dtypes with one rounding.
#pragma once

#include "native_ref/core/table.h"
#include "native_ref/core/tensor.h"

namespace opconform {

struct ConvertTable {
  std::size_t size;
  // x and y have one shape.  rounding: see Rounding (only for float and integer destinations from float sources).
  void (*convert)(const Tensor& x, const Tensor& y, int rounding, bool saturate);
};

}  // namespace opconform
