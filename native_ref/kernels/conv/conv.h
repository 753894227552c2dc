// Convolution and transposed convolution over one to three spatial axes, any dtypes.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

struct Window {  // per spatial axis; begin: padding before the first element, may be negative (cropping)
  std::array<Index, 3> stride{1, 1, 1}, dilation{1, 1, 1}, begin{0, 0, 0};
  Index groups = 1;
};

struct ConvTable {
  std::size_t size;
  // x [n, c, *s], w [m, c / groups, *k], bias [m] or null, y [n, m, *o] C-contiguous: its spatial sizes say how many
  // positions there are.  Padding is zero.  Arithmetic as for matmul: the bias is one more term of each sum.
  void (*conv)(const Tensor& x, const Tensor& w, const Tensor* bias, const Window& window, const Tensor& y);
  // x [n, c, *s], w [c, m / groups, *k]: y[o] sums x[i] w[k] over o = i * stride - begin + k * dilation.
  void (*conv_transpose)(const Tensor& x, const Tensor& w, const Tensor* bias, const Window& window, const Tensor& y);
};

}  // namespace opconform
