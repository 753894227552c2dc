#include <algorithm>
#include <cmath>

#include "native_ref/kernels/conv/windows.h"
#include "native_ref/kernels/gemm/result.h"

namespace opconform::conv {
namespace {

using namespace gemm;

// n columns sorted by their remainder modulo the step, `alike` of each, in their own order.
template <class C>
void unsort(const C* __restrict from, Index alike, Index step, Index n, C* __restrict to) {
  if (step == 2) {
    for (Index i = 0; i < n / 2; ++i) {
      to[2 * i] = from[i];
      to[2 * i + 1] = from[alike + i];
    }
    if (n % 2) to[n - 1] = from[n / 2];
    return;
  }
  for (Index q = 0; q < step; ++q, from += alike)
    for (Index i = q, k = 0; i < n; i += step) to[i] = from[k++];
}

// Every column block of w' x is added where its taps fall, in an image whose columns are sorted by their remainder
// modulo the stride, so that neighbours stay neighbours.  carry: whether rounding errors of these additions are kept.
template <class T, class C>
void convolve_transposed(const Tensor& tx, const Tensor& tw, const Tensor* bias, const Window& v, const Tensor& y,
                         bool carry, Product<T, C> product) {
  const Operand<T> x(tx);
  const Geometry g = geometry(x, tw, y, v.groups);
  const std::vector<T> w = weights_with_bias<T>(tw, nullptr);  // [c, filters * taps]
  const Index taps = g.taps(), n = g.inputs(), m = g.outputs(), width = g.filters * taps;
  const Index step = v.stride[2], alike = (g.out[2] + step - 1) / step, lines = g.out[0] * g.out[1];
  std::vector<C> sorted(static_cast<std::size_t>(step == 1 ? 0 : lines * step * alike));
  Result<C> result(y, g.filters * m);
  std::vector<C> start(static_cast<std::size_t>(g.filters * v.groups));
  if (bias) Reader(*bias).next(start.data(), g.filters * v.groups);
  std::vector<T> dense(static_cast<std::size_t>(g.channels * n));  // x of one image and group as [channels, inputs]
  std::vector<C> part(static_cast<std::size_t>(width * n));
  std::vector<C> lost(static_cast<std::size_t>(carry ? lines * step * alike : 0));
  for (Index b = 0; b < g.batch; ++b)
    for (Index group = 0; group < v.groups; ++group) {
      T* to = dense.data();
      for (Index c = 0; c < g.channels; ++c)
        for (Index z = 0; z < g.in[0]; ++z)
          for (Index r = 0; r < g.in[1]; ++r) {
            const T* from = x.data() + b * x.step(0) + (group * g.channels + c) * x.step(1) + z * g.step[0]
                + r * g.step[1];
            for (Index i = 0; i < g.in[2]; ++i) *to++ = from[i * g.step[2]];
          }
      product(width, n, g.channels, Matrix<T>{w.data() + group * g.channels * width, 1, width},
              MatrixRows<T>(Matrix<T>{dense.data(), n, 1}), part.data(), n);
      const Index offset = (b * v.groups + group) * g.filters * m;
      C* cells = result.cells(offset);
      for (Index f = 0; f < g.filters; ++f, cells += m) {
        C* image = step == 1 ? cells : sorted.data();
        std::fill_n(image, lines * step * alike, start[static_cast<std::size_t>(group * g.filters + f)]);
        std::fill(lost.begin(), lost.end(), C{});
        const C* from = part.data() + f * taps * n;
        for (Index kz = 0; kz < g.kernel[0]; ++kz)
          for (Index ky = 0; ky < g.kernel[1]; ++ky)
            for (Index kx = 0; kx < g.kernel[2]; ++kx) {
              // elements whose output ox = i * step + at lies inside
              const Index at = kx * v.dilation[2] - v.begin[2], low = at >= 0 ? 0 : (-at + step - 1) / step;
              const Index high = std::min(g.in[2], g.out[2] > at ? (g.out[2] - at + step - 1) / step : Index{0});
              if (low >= high) {
                from += n;
                continue;
              }
              const Index first = low * step + at, place = first % step * alike + first / step;
              for (Index z = 0; z < g.in[0]; ++z)
                for (Index r = 0; r < g.in[1]; ++r, from += g.in[2]) {
                  const Index oz = z * v.stride[0] - v.begin[0] + kz * v.dilation[0];
                  const Index oy = r * v.stride[1] - v.begin[1] + ky * v.dilation[1];
                  if (oz < 0 || oz >= g.out[0] || oy < 0 || oy >= g.out[1]) continue;
                  const Index cell = (oz * g.out[1] + oy) * step * alike + place;
                  const C* e = from + low;
                  C* to = image + cell;
                  if (!carry) {
                    for (Index i = 0; i < high - low; ++i) to[i] += e[i];
                    continue;
                  }
                  C* missed = lost.data() + cell;
                  for (Index i = 0; i < high - low; ++i) {
                    const C t = to[i] + e[i], s = t - to[i];
                    missed[i] += (to[i] - (t - s)) + (e[i] - s);
                    to[i] = t;
                  }
                }
            }
        for (std::size_t i = 0; i < lost.size(); ++i)
          if (std::isfinite(static_cast<double>(image[i]))) image[i] += lost[i];
        for (Index line = 0; step > 1 && line < lines; ++line)
          unsort(image + line * step * alike, alike, step, g.out[2], cells + line * g.out[2]);
      }
      result.store(offset, g.filters * m);
    }
}

}  // namespace

void transposed(const Tensor& x, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y) {
  if (y.size() == 0) return;
  switch (way_of(x, w, bias, w.dim(0))) {
    case Way::screened: return convolve_transposed<float, double>(x, w, bias, v, y, false, multiply_screened);
    case Way::dot2: return convolve_transposed<double, double>(x, w, bias, v, y, true, multiply_dot2);
    case Way::bytes: return convolve_transposed<float, std::int64_t>(x, w, bias, v, y, false, multiply_bytes);
    case Way::halves: return convolve_transposed<double, double>(x, w, bias, v, y, false, multiply_plain);
    case Way::integers: return convolve_transposed<std::int64_t, std::int64_t>(x, w, bias, v, y, false, multiply_integers);
  }
}

}  // namespace opconform::conv
