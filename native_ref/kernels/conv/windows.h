// What the ways of convolution share: sizes, weights, and the image as a matrix of what its windows see.
#pragma once

#include <vector>

#include "native_ref/kernels/conv/conv.h"
#include "native_ref/kernels/gemm/gemm.h"
#include "native_ref/kernels/gemm/operand.h"

namespace opconform::conv {

using gemm::Operand;
using gemm::Way;

// Sizes with the spatial axes filled up to three, and element strides of x.
struct Geometry {
  std::array<Index, 3> in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1}, step{0, 0, 0};
  Index batch = 0, channels = 0, filters = 0;  // channels and filters of one group
  Index taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  Index inputs() const { return in[0] * in[1] * in[2]; }
  Index outputs() const { return out[0] * out[1] * out[2]; }
};

template <class T>
Geometry geometry(const Operand<T>& x, const Tensor& w, const Tensor& y, Index groups);

// The image as a matrix [channels * taps (+ 1), outputs], made row by row and never stored: row (c, kz, ky, kx) holds
// what that tap of the window sees at every output position.  The last row, all ones, carries the bias.
template <class T>
class WindowRows final : public gemm::Rows<T> {
 public:
  // image: x of this image and group.  plain: windows of one element, no stride, no padding, contiguous: rows lie ready
  // in memory.
  WindowRows(const T* image, Index channel_step, const Geometry& geometry, const Window& window, bool plain)
      : x(image), channel_step(channel_step), g(geometry), v(window), plain(plain) {}

 private:
  const T* make(Index k, Index j, Index n, T* scratch) const override;
  const T* x;
  Index channel_step;
  const Geometry& g;
  const Window& v;
  bool plain;
};

// w as [rows, depth] with the bias as one more column.
template <class T>
std::vector<T> weights_with_bias(const Tensor& w, const Tensor* bias);

// How the product is carried out; depth: the terms of a sum without the bias.
Way way_of(const Tensor& x, const Tensor& w, const Tensor* bias, Index depth);

// One channel per group, narrow floats.  False, and nothing done: the windows span padding far larger than x and y.
bool depthwise(const Tensor& x, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y);
void transposed(const Tensor& x, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y);

}  // namespace opconform::conv
