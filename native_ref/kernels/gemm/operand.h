// A tensor as elements of one of the types that products are made of: f32 (holds every narrower float and 8-bit
// integer),
// f64, i64.  Tensors of that very type are used in place, others are copied once.
#pragma once

#include <type_traits>
#include <vector>

#include "native_ref/core/block.h"

namespace opconform::gemm {

template <class T>
inline constexpr DType kTypeOf = std::is_same_v<T, float> ? DType::f32 : std::is_same_v<T,
    double> ? DType::f64 : DType::i64;

template <class T>
class Operand {
 public:
  explicit Operand(const Tensor& t) : rank_(t.rank), shape_(t.shape) {
    bool in_place = t.dtype == kTypeOf<T> || (std::is_same_v<T, std::int64_t> && t.dtype == DType::u64);
    for (int i = 0; i < t.rank; ++i) in_place = in_place && t.step(i) % static_cast<Index>(sizeof(T)) == 0;
    if (in_place) {
      data_ = reinterpret_cast<const T*>(t.data);
      for (int i = 0; i < t.rank; ++i) stride_[at(i)] = t.step(i) / static_cast<Index>(sizeof(T));
      return;
    }
    Tensor unique = t;  // broadcast axes are copied once
    for (int i = 0; i < t.rank; ++i)
      if (t.step(i) == 0) unique.shape[at(i)] = 1;
    const Index n = t.size() == 0 ? 0 : unique.size();
    copy_.resize(static_cast<std::size_t>(n));
    Reader reader(unique);
    if constexpr (std::is_same_v<T, float>) {
      double block[kBlock];
      for (Index i = 0; i < n; i += kBlock) {
        const Index m = n - i < kBlock ? n - i : kBlock;
        reader.next(block, m);
        for (Index j = 0; j < m; ++j) copy_[static_cast<std::size_t>(i + j)] = static_cast<float>(block[j]);
      }
    } else {
      reader.next(copy_.data(), n);
    }
    data_ = copy_.data();
    Index step = 1;
    for (int i = t.rank - 1; i >= 0; --i) {
      stride_[at(i)] = unique.shape[at(i)] == 1 ? 0 : step;
      step *= unique.shape[at(i)];
    }
  }
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
