// Blocks: the way every kernel meets every dtype.
//
//   strided memory of any dtype --load--> block of f64 (or 64-bit integers) --op--> block --store--> any dtype
//
// So nothing but this file knows how a dtype is spelt in memory, and an op is compiled once rather than once per dtype.
// f64 holds every float type exactly and is rounded ONCE by the store.  Integers travel as the 64-bit pattern of their
// value (sign- or zero-extended); a store keeps the low bits, which is wrap-around arithmetic in every width.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

inline constexpr Index kBlock = 512;

// n elements, `stride` bytes apart (0 repeats one element).  Loading an integer as f64 rounds to nearest even above 2^53;
// bool loads as 0 or 1; complex and str have no loader.
using LoadF64 = void (*)(const char* src, Index stride, Index n, double* dst);
using LoadI64 = void (*)(const char* src, Index stride, Index n, std::int64_t* dst);
// Storing f64: one rounding to nearest, ties to even; float types overflow as their definition says (inf or NaN, f4
// saturates); integer types take the value as truncated toward zero and SATURATED, NaN gives 0; bool is (v != 0).
using StoreF64 = void (*)(const double* src, char* dst, Index stride, Index n);
// Storing an integer keeps the low bits; bool is (v != 0).  Float destinations are refused (null entry).
using StoreI64 = void (*)(const std::int64_t* src, char* dst, Index stride, Index n);

LoadF64 load_f64(DType d);
LoadI64 load_i64(DType d);  // null for float types
StoreF64 store_f64(DType d);
StoreI64 store_i64(DType d);  // null for float types

// Walks up to N broadcast operands of one common shape in C order, in runs along the innermost merged axis.
// Strides of broadcast axes are 0.  run() gives how many elements the current run has left.
template <int N>
class Walk {
 public:
  // tensors are already expanded to `shape` (see broadcast() in walk.h)
  Walk(const std::array<const Tensor*, N>& ts) {
    const Tensor& first = *ts[0];
    total_ = first.size();
    rank_ = 0;
    for (int i = 0; i < first.rank; ++i) {
      if (first.dim(i) == 1) continue;
      bool merge = rank_ > 0;
      for (int k = 0; k < N && merge; ++k)
        merge = stride_[idx(k)][idx(rank_ - 1)] == ts[idx(k)]->step(i) * first.dim(i);
      if (merge) {
        shape_[idx(rank_ - 1)] *= first.dim(i);
        for (int k = 0; k < N; ++k) stride_[idx(k)][idx(rank_ - 1)] = ts[idx(k)]->step(i);
      } else {
        shape_[idx(rank_)] = first.dim(i);
        for (int k = 0; k < N; ++k) stride_[idx(k)][idx(rank_)] = ts[idx(k)]->step(i);
        ++rank_;
      }
    }
    if (rank_ == 0) {
      shape_[0] = 1;
      for (int k = 0; k < N; ++k) stride_[idx(k)][0] = ts[idx(k)]->bytes();
      rank_ = 1;
    }
    for (int k = 0; k < N; ++k) ptr_[idx(k)] = ts[idx(k)]->data;
    left_ = shape_[idx(rank_ - 1)];
  }
  Index total() const { return total_; }
  Index run() const { return left_; }
  char* ptr(int k) const { return ptr_[idx(k)]; }
  Index step(int k) const { return stride_[idx(k)][idx(rank_ - 1)]; }
  // n <= run()
  void advance(Index n) {
    for (int k = 0; k < N; ++k) ptr_[idx(k)] += n * step(k);
    left_ -= n;
    if (left_ > 0) return;
    left_ = shape_[idx(rank_ - 1)];
    for (int k = 0; k < N; ++k) ptr_[idx(k)] -= left_ * step(k);
    for (int a = rank_ - 2; a >= 0; --a) {
      for (int k = 0; k < N; ++k) ptr_[idx(k)] += stride_[idx(k)][idx(a)];
      if (++at_[idx(a)] < shape_[idx(a)]) return;
      at_[idx(a)] = 0;
      for (int k = 0; k < N; ++k) ptr_[idx(k)] -= shape_[idx(a)] * stride_[idx(k)][idx(a)];
    }
  }

 private:
  static constexpr std::size_t idx(int i) { return static_cast<std::size_t>(i); }
  Index total_ = 0, left_ = 0;
  int rank_ = 0;
  std::array<Index, kMaxRank> shape_{}, at_{};
  std::array<std::array<Index, kMaxRank>, N> stride_{};
  std::array<char*, N> ptr_{};
};

// One tensor as a stream of blocks, whatever its strides: rows shorter than a block are put together.
class Reader {
 public:
  explicit Reader(const Tensor& t);
  Index total() const { return walk_.total(); }
  void next(double* dst, Index n);
  void next(std::int64_t* dst, Index n);
  // The same elements without a copy where they lie as f64 in a row, else loaded into `room`.
  const double* look(double* room, Index n);

 private:
  Walk<1> walk_;
  LoadF64 f64_;
  LoadI64 i64_;
  bool plain_;
};

class Writer {
 public:
  explicit Writer(const Tensor& t);
  void next(const double* src, Index n);
  void next(const std::int64_t* src, Index n);

 private:
  Walk<1> walk_;
  StoreF64 f64_;
  StoreI64 i64_;
};

}  // namespace opconform
