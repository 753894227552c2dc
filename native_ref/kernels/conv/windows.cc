#include "native_ref/kernels/conv/windows.h"

#include <algorithm>
#include <type_traits>

#include "native_ref/core/block.h"

namespace opconform::conv {

template <class T>
Geometry geometry(const Operand<T>& x, const Tensor& w, const Tensor& y, Index groups) {
  Geometry g;
  const int spatial = x.rank() - 2, lead = 3 - spatial;
  for (int i = 0; i < spatial; ++i) {
    const auto a = static_cast<std::size_t>(lead + i);
    g.in[a] = x.dim(2 + i);
    g.step[a] = x.step(2 + i);
    g.kernel[a] = w.dim(2 + i);
    g.out[a] = y.dim(2 + i);
  }
  g.batch = x.dim(0);
  g.channels = x.dim(1) / groups;
  g.filters = y.dim(1) / groups;
  return g;
}

template <class T>
const T* WindowRows<T>::make(Index k, Index j, Index n, T* scratch) const {
  const Index taps = g.taps();
  if (k == g.channels * taps) {
    std::fill_n(scratch, n, T{1});
    return scratch;
  }
  const T* image = x + k / taps * channel_step;
  if (plain) return image + j;
  const Index tap = k % taps;
  const Index kx = tap % g.kernel[2], ky = tap / g.kernel[2] % g.kernel[1], kz = tap / (g.kernel[2] * g.kernel[1]);
  Index ox = j % g.out[2], oy = j / g.out[2] % g.out[1], oz = j / (g.out[2] * g.out[1]);
  T* to = scratch;
  while (n > 0) {
    const Index m = std::min(n, g.out[2] - ox);
    const Index iz = oz * v.stride[0] - v.begin[0] + kz * v.dilation[0];
    const Index iy = oy * v.stride[1] - v.begin[1] + ky * v.dilation[1];
    if (iz < 0 || iz >= g.in[0] || iy < 0 || iy >= g.in[1]) {
      std::fill_n(to, m, T{});
    } else {
      const Index s = v.stride[2], at = kx * v.dilation[2] - v.begin[2];  // ix = ox * s + at
      // first and past-the-last ox of this run with 0 <= ix < in
      const Index low = std::clamp(at >= 0 ? Index{0} : (-at + s - 1) / s, ox, ox + m);
      const Index high = std::clamp(g.in[2] > at ? (g.in[2] - at + s - 1) / s : Index{0}, low, ox + m);
      std::fill(to, to + (low - ox), T{});
      const T* from = image + iz * g.step[0] + iy * g.step[1] + (low * s + at) * g.step[2];
      const Index step = s * g.step[2];
      T* o = to + (low - ox);
      if (step == 1)
        std::copy(from, from + (high - low), o);
      else
        for (Index i = 0; i < high - low; ++i) o[i] = from[i * step];
      std::fill(to + (high - ox), to + m, T{});
    }
    to += m;
    n -= m;
    ox = 0;
    if (++oy == g.out[1]) {
      oy = 0;
      ++oz;
    }
  }
  return scratch;
}

// w as [rows, depth] with the bias as one more column.
template <class T>
std::vector<T> weights_with_bias(const Tensor& w, const Tensor* bias) {
  const Index rows = w.dim(0), depth = rows ? w.size() / rows : 0, width = depth + (bias ? 1 : 0);
  std::vector<T> out(static_cast<std::size_t>(rows * width));
  Reader weights(w), biases(bias ? *bias : w);
  std::conditional_t<std::is_same_v<T, std::int64_t>, std::int64_t, double> block[kBlock];
  for (Index r = 0; r < rows; ++r) {
    T* o = out.data() + r * width;
    for (Index i = 0; i < depth; i += kBlock) {
      const Index n = std::min(kBlock, depth - i);
      weights.next(block, n);
      for (Index j = 0; j < n; ++j) o[i + j] = static_cast<T>(block[j]);
    }
    if (bias) {
      biases.next(block, 1);
      o[depth] = static_cast<T>(block[0]);
    }
  }
  return out;
}

Way way_of(const Tensor& x, const Tensor& w, const Tensor* bias, Index depth) {
  const Way plain = gemm::way(x.dtype, w.dtype, depth);
  return bias && plain == Way::screened && bias->dtype == DType::f64 ? Way::dot2 : plain;
}

#define OPCONFORM_OF(T)                                                                           \
  template Geometry geometry(const Operand<T>& x, const Tensor& w, const Tensor& y, Index groups); \
  template class WindowRows<T>;                                                                    \
  template std::vector<T> weights_with_bias(const Tensor& w, const Tensor* bias);
OPCONFORM_OF(float)
OPCONFORM_OF(double)
OPCONFORM_OF(std::int64_t)

}  // namespace opconform::conv
