// Matrix products of any dtypes, batched, with broadcasting.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

struct GemmTable {
  std::size_t size;
  // a [..., m, k], b [..., k, n] with equal leading axes (stride 0 where broadcast), y [..., m, n] C-contiguous.
  // Float operands: y any float type, one rounding of a sum in (at least) f64.  Integer operands: exact modulo 2^64,
  // y any
  // integer type keeps the low bits.
  void (*matmul)(const Tensor& a, const Tensor& b, const Tensor& y);
};

}  // namespace opconform
