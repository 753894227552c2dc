// Softmax along one axis.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

struct NormTable {
  std::size_t size;
  // y of x's shape, C-contiguous, any float type: exp(x - max) / sum, or x - max - log(sum) when log is set.
  void (*softmax)(const Tensor& x, int axis, bool log, const Tensor& y);
};

}  // namespace opconform
