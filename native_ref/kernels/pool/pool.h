// Pooling over one to three spatial axes.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

enum class Pooling : std::int32_t { max = 0, average, average_with_padding, lp };

// per spatial axis; begin, end: declared padding; the result's sizes say how many windows there are
struct PoolWindow {
  std::array<Index, 3> kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, begin{0, 0, 0}, end{0, 0, 0};
  double p = 2;
};

struct PoolTable {
  std::size_t size;
  // x [n, c, *s], y [n, c, *o] C-contiguous.  A maximum over no element at all is -inf (lowest of an integer type), an
  // average over none NaN.  NaN wins a maximum.  average_with_padding divides by the window cells inside the declared
  // padding, the elements beyond it (ceil mode) count for nothing; average divides by the cells inside x.
  // positions: null, or i64 like y: flat spatial index of the maximum, first of equals in C order, -1 for none.
  void (*pool)(Pooling kind, const Tensor& x, const PoolWindow& window, const Tensor& y, const Tensor* positions);
};

}  // namespace opconform
