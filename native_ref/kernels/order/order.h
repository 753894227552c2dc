// Ranking and distinct elements: zeros are alike, NaN is alike and stands above every number.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

struct OrderTable {
  std::size_t size;
  // The first k indices of every line along `axis` in rising (falling) order, equals by rising index.
  // out: i64, x's shape with k on the axis.  x real.
  void (*rank)(const Tensor& x, int axis, bool descending, Index k, const Tensor& out);
  // The distinct slices along `axis`; returns how many, at most the extent n.  rising: in lexicographic order, else by first
  // occurrence.  first, counts: index of the first and number of each; inverse: which one each of the n slices is.  x real.
  Index (*unique)(const Tensor& x, int axis, bool rising, std::int64_t* first, std::int64_t* inverse, std::int64_t* counts);
};

}  // namespace opconform
