// Interpolation along one axis as weighted taps; every resampling op is a table of taps per axis.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

struct ResizeTable {
  std::size_t size;
  // y[.., o, ..] = sum over t of weight[o, t] * x[.., index[o, t], ..] along `axis`; weight and index are [outputs,
  // taps],
  // C-contiguous f64 and i64.  A tap of weight 0 does not touch x (an infinity there stays out).  y C-contiguous float.
  void (*interpolate)(const Tensor& x, int axis, const std::int64_t* index, const double* weight, Index taps,
      const Tensor& y);
};

}  // namespace opconform
