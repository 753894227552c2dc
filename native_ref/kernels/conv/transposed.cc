#include <algorithm>
#include <cmath>
#include <vector>

#include "native_ref/core/block.h"
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
  for (Index q = 0; q < std::min(step, n); ++q, from += alike)
    for (Index i = q, k = 0; i < n; i += step) to[i] = from[k++];
}

// One filter's columns of w' x are added where their taps fall, in an image whose columns are sorted by their remainder
// modulo the stride, so that neighbours stay neighbours.
template <class C>
class Falling {
 public:
  // carry: whether rounding errors of these additions are kept
  Falling(const Geometry& geometry, const Window& window, bool carry)
      : g_(geometry), v_(window), carry_(carry), step_(v_.stride[2]), alike_((g_.out[2] + step_ - 1) / step_),
        width_(std::min(step_, g_.out[2]) * alike_), lines_(g_.out[0] * g_.out[1]),
        sorted_(static_cast<std::size_t>(step_ == 1 ? 0 : size())), lost_(static_cast<std::size_t>(carry ? size() : 0)) {}

  // from: [taps, inputs]; cells: the outputs.
  [[gnu::noinline]] void add(const C* from, C start, C* cells) {
    const Geometry& g = g_;
    const Window& v = v_;
    const Index n = g.inputs(), step = step_, alike = alike_;
    C* image = step == 1 ? cells : sorted_.data();
    std::fill_n(image, size(), start);
    std::fill(lost_.begin(), lost_.end(), C{});
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
              const Index cell = (oz * g.out[1] + oy) * width_ + place;
              const C* e = from + low;
              C* to = image + cell;
              if (!carry_) {
                for (Index i = 0; i < high - low; ++i) to[i] += e[i];
                continue;
              }
              C* missed = lost_.data() + cell;
              for (Index i = 0; i < high - low; ++i) {
                const C t = to[i] + e[i], s = t - to[i];
                missed[i] += (to[i] - (t - s)) + (e[i] - s);
                to[i] = t;
              }
            }
        }
    for (std::size_t i = 0; i < lost_.size(); ++i)
      if (std::isfinite(static_cast<double>(image[i]))) image[i] += lost_[i];
    for (Index line = 0; step > 1 && line < lines_; ++line)
      unsort(image + line * width_, alike, step, g.out[2], cells + line * g.out[2]);
  }

 private:
  Index size() const { return lines_ * width_; }
  const Geometry& g_;
  const Window& v_;
  bool carry_;
  Index step_, alike_, width_, lines_;  // width: of a line, sorted
  std::vector<C> sorted_, lost_;
};

template <class T, class C>
void convolve_transposed(const Tensor& tx, const Tensor& tw, const Tensor* bias, const Window& v, const Tensor& y,
                         bool carry, Product<T, C> product) {
  const Operand<T> x(tx);
  const Geometry g = geometry(x, tw, y, v.groups);
  const std::vector<T> w = weights_with_bias<T>(tw, nullptr);  // [c, filters * taps]
  const Index taps = g.taps(), n = g.inputs(), m = g.outputs(), width = g.filters * taps;
  Falling<C> falling(g, v, carry);
  Result<C> result(y, g.filters * m);
  std::vector<C> start(static_cast<std::size_t>(g.filters * v.groups));
  if (bias) Reader(*bias).next(start.data(), g.filters * v.groups);
  std::vector<T> dense(static_cast<std::size_t>(g.channels * n));  // x of one image and group as [channels, inputs]
  std::vector<C> part(static_cast<std::size_t>(width * n));
  for (Index b = 0; b < g.batch; ++b)
    for (Index group = 0; group < v.groups; ++group) {
      T* to = dense.data();
      for (Index c = 0; c < g.channels; ++c)
        for (Index z = 0; z < g.in[0]; ++z)
          for (Index r = 0; r < g.in[1]; ++r) {
            const T* from = x.data() + b * x.step(0) + (group * g.channels + c) * x.step(1) + z * g.step[0] +
                            r * g.step[1];
            for (Index i = 0; i < g.in[2]; ++i) *to++ = from[i * g.step[2]];
          }
      product(width, n, g.channels, Matrix<T>{w.data() + group * g.channels * width, 1, width},
              MatrixRows<T>(Matrix<T>{dense.data(), n, 1}), part.data(), n);
      const Index offset = (b * v.groups + group) * g.filters * m;
      for (Index f = 0; f < g.filters; ++f)
        falling.add(part.data() + f * taps * n, start[static_cast<std::size_t>(group * g.filters + f)],
                    result.cells(offset) + f * m);
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
    case Way::integers:
      return convolve_transposed<std::int64_t, std::int64_t>(x, w, bias, v, y, false, multiply_integers);
  }
}

}  // namespace opconform::conv
