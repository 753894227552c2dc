// Before and after an integer product: centring on the zero point, and back to few bits by a fixed-point multiplication.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

struct Requantise {
  std::int64_t zero = 0, low = 0, high = 0;
  bool wide = false;  // 64-bit accumulators times the multiplier's upper half, as with 16-bit activations
};

struct QuantiseTable {
  std::size_t size;
  // x - zero, integers of at most 32 bits; zero broadcast to x's shape; out holds every difference.
  void (*centre)(const Tensor& x, const Tensor& zero, const Tensor& out);
  // acc * scale + q.zero within [q.low, q.high], the product by gemmlowp's steps: 31-bit multiplier, rounded high
  // multiplication, rounding shift (ties away from zero); acc is saturated to 32 bits after the left shift.  A scale that
  // is not positive or not finite, which no multiplier stands for, is taken for 0.  acc (integers), scale (f64) and out
  // (any integer type that holds the limits) of one shape.
  void (*requantise)(const Tensor& acc, const Tensor& scale, const Requantise& q, const Tensor& out);
};

}  // namespace opconform
