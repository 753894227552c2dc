#include "native_ref/kernels/resize/resize.h"

#include <algorithm>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"

namespace opconform {
namespace {

void interpolate(const Tensor& x, int axis, const std::int64_t* index, const double* weight, Index taps,
    const Tensor& y) {
  if (y.size() == 0) return;
  const Index n = x.dim(axis), m = y.dim(axis);
  Index inner = 1;
  for (int i = axis + 1; i < x.rank; ++i) inner *= x.dim(i);
  const StoreF64 store = store_f64(y.dtype);
  Reader reader(x);
  std::vector<double> from(static_cast<std::size_t>(n * inner)), to(static_cast<std::size_t>(m * inner));
  char* out = y.data;
  for (Index left = y.size() / (m * inner); left > 0; --left) {
    reader.next(from.data(), n * inner);
    for (Index o = 0; o < m; ++o) {
      double* row = to.data() + o * inner;
      bool first = true;
      for (Index t = 0; t < taps; ++t) {
        const double w = weight[o * taps + t];
        if (w == 0) continue;
        const double* p = from.data() + index[o * taps + t] * inner;
        if (first)
          for (Index i = 0; i < inner; ++i) row[i] = w * p[i];
        else
          for (Index i = 0; i < inner; ++i) row[i] += w * p[i];
        first = false;
      }
      if (first) std::fill_n(row, inner, 0.0);
    }
    store(to.data(), out, y.bytes(), m * inner);
    out += m * inner * y.bytes();
  }
}

}  // namespace

OPCONFORM_TABLE const ResizeTable opconform_resize{sizeof(ResizeTable), interpolate};

}  // namespace opconform
