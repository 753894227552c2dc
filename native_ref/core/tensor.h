// A strided view of somebody else's memory, and the error that bindings turn into ValueError.
#pragma once

#include <array>
#include <stdexcept>
#include <string>

#include "native_ref/core/dtype.h"

namespace opconform {

using Index = std::int64_t;
constexpr std::size_t at(Index i) { return static_cast<std::size_t>(i); }  // what containers count with

inline constexpr int kMaxRank = 16;

struct Tensor {
  char* data = nullptr;
  DType dtype = DType::f64;
  int rank = 0;
  std::array<Index, kMaxRank> shape{};
  std::array<Index, kMaxRank> stride{};  // bytes

  Index size() const {
    Index n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
    return n;
  }
  Index bytes() const { return info(dtype).bytes; }
  Index dim(int i) const { return shape[static_cast<std::size_t>(i)]; }
  Index step(int i) const { return stride[static_cast<std::size_t>(i)]; }
  bool contiguous() const {
    if (size() == 0) return true;  // NumPy may give an empty array strides of 0
    Index want = bytes();
    for (int i = rank - 1; i >= 0; --i) {
      if (dim(i) != 1 && step(i) != want) return false;
      want *= dim(i);
    }
    return true;
  }
};

// A caller's mistake: becomes ValueError.
class Error : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

}  // namespace opconform
