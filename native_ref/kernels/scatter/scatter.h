// Writing by index: updates combined, in their order, into places of a tensor that may be named more than once.
#pragma once

#include "native_ref/core/table.h"
#include "native_ref/core/tensor.h"

namespace opconform {

enum class Combine : std::int32_t { none = 0, add, mul, max, min, sub, div };

struct ScatterTable {
  std::size_t size;
  // y: C-contiguous, becomes x with the updates in it.  Update r goes to the `inner` elements of y from place[r] on; updates:
  // rows * inner elements, any strides.
  //   none    y's own type, bits are copied
  //   others  y f64 or c128 for float or complex updates, else an integer type (wraps; bool: or for add, and for mul)
  // NaN wins max and min; of two zeros the positive (negative) one does.
  void (*write)(Combine how, const Tensor& x, const std::int64_t* place, Index inner, const Tensor& updates, const Tensor& y);
  // Whether a place is named twice; places below `extent`.
  bool (*repeated)(const std::int64_t* place, Index rows, Index extent);
};

}  // namespace opconform
