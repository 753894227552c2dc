#include "native_ref/kernels/conv/conv.h"

#include <algorithm>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"
#include "native_ref/kernels/conv/windows.h"
#include "native_ref/kernels/gemm/result.h"

namespace opconform {
namespace {

using namespace conv;

// merged: whether the bias is one more term of the product.
template <class T, class C>
void convolve(const Tensor& tx, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y, bool merged,
              gemm::Product<T, C> product) {
  const Operand<T> x(tx);
  const Geometry g = geometry(x, w, y, v.groups);
  // floats take the bias as a term of the sum, so that it shares its care; integers add it exactly afterwards
  const std::vector<T> a = weights_with_bias<T>(w, merged ? bias : nullptr);
  const Index depth = g.channels * g.taps() + (merged && bias ? 1 : 0), n = g.outputs();
  std::vector<C> added(!merged && bias ? static_cast<std::size_t>(w.dim(0)) : 0);
  if (!merged && bias) Reader(*bias).next(added.data(), w.dim(0));
  gemm::Result<C> result(y, g.filters * n);
  bool plain = g.taps() == 1 && g.in == g.out;
  for (std::size_t i = 3, step = 1; i-- > 0; step *= static_cast<std::size_t>(g.in[i]))
    plain = plain && v.begin[i] == 0 && (g.in[i] == 1 || (v.stride[i] == 1 && g.step[i] == static_cast<Index>(step)));
  for (Index b = 0; b < g.batch; ++b)
    for (Index group = 0; group < v.groups; ++group) {
      const T* image = x.data() + b * x.step(0) + group * g.channels * x.step(1);
      const WindowRows<T> rows{image, x.step(1), g, v, plain};
      const Index offset = (b * v.groups + group) * g.filters * n;
      product(g.filters, n, depth, gemm::Matrix<T>{a.data() + group * g.filters * depth, depth, 1}, rows,
          result.cells(offset), n);
      if (!added.empty())
        for (Index i = 0; i < g.filters * n; ++i)
          result.cells(offset)[i] += added[static_cast<std::size_t>(group * g.filters + i / n)];
      result.store(offset, g.filters * n);
    }
}

void conv_any(const Tensor& x, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y) {
  if (y.size() == 0) return;
  switch (way_of(x, w, bias, w.dim(0) ? w.size() / w.dim(0) : 0)) {
    case Way::screened:
      if (w.dim(1) == 1 && w.dim(0) / v.groups <= 2 && depthwise(x, w, bias, v, y)) return;
      return convolve<float, double>(x, w, bias, v, y, true, gemm::multiply_screened);
    case Way::dot2: return convolve<double, double>(x, w, bias, v, y, true, gemm::multiply_dot2);
    case Way::bytes: return convolve<float, std::int64_t>(x, w, bias, v, y, false, gemm::multiply_bytes);
    case Way::halves: return convolve<double, double>(x, w, bias, v, y, false, gemm::multiply_plain);
    case Way::integers: return convolve<std::int64_t, std::int64_t>(x, w, bias, v, y, false, gemm::multiply_integers);
  }
}

}  // namespace

OPCONFORM_TABLE const ConvTable opconform_conv{sizeof(ConvTable), conv_any, transposed};

}  // namespace opconform
