// A tensor as elements of one of the types that products are made of: f32 (holds every narrower float and 8-bit
// integer), f64, i64.  Tensors of that very type are used in place, others are copied once.
#pragma once

#include <vector>

#include "native_ref/core/tensor.h"

namespace opconform::gemm {

template <class T>
class Operand {
 public:
  explicit Operand(const Tensor& t);
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  const T* data() const { return data_; }
  int rank() const { return rank_; }
  Index dim(int i) const { return shape_[at(i)]; }
  Index step(int i) const { return stride_[at(i)]; }  // in elements

 private:
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const T* data_ = nullptr;
  int rank_;
  std::array<Index, kMaxRank> shape_{}, stride_{};
  std::vector<T> copy_;
};

// How a product of two dtypes is carried out.
enum class Way {
  screened,   // floats of at most 32 bits: f64 sums, Dot2 where they are not enough
  dot2,       // f64
  bytes,      // 8-bit integers: exact f32 sums per block of 256, added up as integers
  halves,     // 16-bit integers: exact f64 sums
  integers,   // modulo 2^64
};

inline Way way(DType a, DType b, Index depth) {
  if (!is_int(a) || !is_int(b)) return a == DType::f64 || b == DType::f64 || is_int(a)
      || is_int(b) ? Way::dot2 : Way::screened;
  const int bits = info(a).bits > info(b).bits ? info(a).bits : info(b).bits;
  if (bits <= 8) return Way::bytes;
  return bits <= 16 && depth <= (Index{1} << 21) ? Way::halves : Way::integers;
}

}  // namespace opconform::gemm
