#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/kernels/gemm/scratch.h"

namespace opconform::gemm {

// Result cells in the accumulation type: y itself when it has that type, else a buffer that is stored with one
// rounding.
template <class C>
class Result {
 public:
  Result(const Tensor& y, Index n) : y_(y), direct_(std::is_same_v<C,
      double> ? y.dtype == DType::f64 : y.dtype == DType::i64 || y.dtype == DType::u64) {
    if (!direct_) {
      thread_local Scratch<C> scratch;  // one result at a time in a thread
      buffer_ = scratch.get(n);
    }
  }
  C* cells(Index offset) { return direct_ ? reinterpret_cast<C*>(y_.data) + offset : buffer_; }
  void store(Index offset, Index n) {
    if (direct_) return;
    char* to = y_.data + offset * y_.bytes();
    if constexpr (std::is_same_v<C, double>)
      is_int(y_.dtype) ? store_i64(y_.dtype)(integers(n), to, y_.bytes(), n)
                       : store_f64(y_.dtype)(buffer_, to, y_.bytes(), n);
    else
      store_i64(y_.dtype)(buffer_, to, y_.bytes(), n);
  }

 private:
  const std::int64_t* integers(Index n) {
    whole_.resize(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < whole_.size(); ++i) whole_[i] = static_cast<std::int64_t>(buffer_[i]);
    return whole_.data();
  }
  Tensor y_;
  bool direct_;
  C* buffer_ = nullptr;
  std::vector<std::int64_t> whole_;
};

}  // namespace opconform::gemm
