// Reading by index.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

struct IndexTable {
  std::size_t size;
  // Every index as i64 from the front, in C order; `is_signed`: negative ones count from the end.  Returns the flat position of
  // the first one that does not lie in its extent, -1 where all do.  extents: `tuple` of them, met in turn.
  Index (*resolve)(const Tensor& index, const Index* extents, Index tuple, bool is_signed, std::int64_t* to);
  // to[l, o, j] = from[l, o, index[l, j]], elements of `bytes`; from [lead, outer, n], index [lead, m], to [lead, outer, m].
  void (*take)(const char* from, char* to, const std::int64_t* index, Index lead, Index outer, Index n, Index m, Index bytes);
  // y[p] = x[p with its coordinate on `axis` replaced by index[p]]; x may have any strides, y and index are C-contiguous of
  // one shape.
  void (*take_along)(const Tensor& x, const std::int64_t* index, int axis, const Tensor& y);
  // to[r] = the `bytes` at from + sum over t of index[r, t] * step[t] + r / per * lead_step
  void (*take_tuples)(const char* from, char* to, const std::int64_t* index, const Index* step, Index tuple, Index rows, Index per,
                      Index lead_step, Index bytes);
};

}  // namespace opconform
