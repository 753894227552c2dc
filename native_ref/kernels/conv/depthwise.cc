#include <algorithm>
#include <cstring>

#include "native_ref/kernels/conv/windows.h"
#include "native_ref/kernels/gemm/result.h"
#include "native_ref/kernels/gemm/tile.h"

namespace opconform::conv {
namespace {

using namespace gemm;

// One channel of x as the windows see it, in f64: padding filled in, cut where no window reaches, and the columns sorted
// by their remainder modulo the stride, so that neighbouring outputs read neighbours for every tap.
class Seen {
 public:
  Seen(const Geometry& g, const Window& v) : g_(g), v_(v) {
    for (std::size_t i = 0; i < 3; ++i) span_[i] = (g.out[i] - 1) * v.stride[i] + (g.kernel[i] - 1) * v.dilation[i] + 1;
    width_ = (span_[2] + v.stride[2] - 1) / v.stride[2] + kSlack;
    phases_ = std::min(v.stride[2], span_[2]);
    cells_.resize(static_cast<std::size_t>(phases_ * span_[0] * span_[1] * width_));
  }
  void fill(const float* image) {
    for (Index z = 0; z < span_[0]; ++z)
      for (Index y = 0; y < span_[1]; ++y) {
        const Index iz = z - v_.begin[0], iy = y - v_.begin[1];
        if (iz < 0 || iz >= g_.in[0] || iy < 0 || iy >= g_.in[1]) continue;  // stays zero
        const float* from = image + iz * g_.step[0] + iy * g_.step[1];
        for (Index phase = 0; phase < phases_; ++phase) {
          double* to = cells_.data() + row(phase, z, y);
          const Index s = v_.stride[2], first = phase - v_.begin[2];  // input column of the first cell
          const Index low = first >= 0 ? 0 : (-first + s - 1) / s;
          const Index high = std::min(width_ - kSlack, g_.in[2] > first ? (g_.in[2] - first + s - 1) / s : Index{0});
          const Index step = s * g_.step[2];
          from += (first + low * s) * g_.step[2];
          if (step == 1)
            for (Index i = low; i < high; ++i) to[i] = static_cast<double>(from[i - low]);
          else
            for (Index i = low; i < high; ++i) to[i] = static_cast<double>(from[(i - low) * step]);
          from -= (first + low * s) * g_.step[2];
        }
      }
  }
  // Where a tap lies from what the first tap sees, and the latter at output (oz, oy, 0), the outputs beside it
  // following; readable kSlack beyond the last.
  Index offset(Index kz, Index ky, Index kx) const {
    const Index x = kx * v_.dilation[2];
    return row(x % v_.stride[2], kz * v_.dilation[0], ky * v_.dilation[1]) + x / v_.stride[2];
  }
  const double* at(Index oz, Index oy) const { return cells_.data() + row(0, oz * v_.stride[0], oy * v_.stride[1]); }

 private:
  static constexpr Index kSlack = kLanes<double>;
  Index row(Index phase, Index z, Index y) const { return ((phase * span_[0] + z) * span_[1] + y) * width_; }
  const Geometry& g_;
  const Window& v_;
  std::array<Index, 3> span_{};
  Index width_, phases_;
  std::vector<double> cells_;
};

}  // namespace

// One channel per group: every tap times a row of outputs, sums kept in registers; nothing is packed.  The sums are
// plain f64, with the squares of what each window saw beside them, and redone by Dot2 where that is not enough.
bool depthwise(const Tensor& tx, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y) {
  using V = Vec<double>;
  constexpr Index L = kLanes<double>;
  const Operand<float> x(tx);
  const Geometry g = geometry(x, w, y, v.groups);
  const std::vector<float> a = weights_with_bias<float>(w, bias);
  double spanned = 1;
  for (std::size_t i = 0; i < 3; ++i)
    spanned *= static_cast<double>((g.out[i] - 1) * v.stride[i] + (g.kernel[i] - 1) * v.dilation[i] + 1);
  if (spanned > 1e6 + 64 * static_cast<double>(tx.size() + y.size())) return false;
  const Index taps = g.taps(), depth = taps + (bias ? 1 : 0), n = g.outputs(), width = g.out[2];
  Result<double> result(y, g.filters * n);
  Seen seen(g, v);
  std::vector<double> squares(static_cast<std::size_t>(n)), p, q;
  std::vector<Index> offsets;
  for (Index kz = 0; kz < g.kernel[0]; ++kz)
    for (Index ky = 0; ky < g.kernel[1]; ++ky)
      for (Index kx = 0; kx < g.kernel[2]; ++kx) offsets.push_back(seen.offset(kz, ky, kx));
  for (Index b = 0; b < g.batch; ++b)
    for (Index group = 0; group < v.groups; ++group) {
      const float* image = x.data() + b * x.step(0) + group * x.step(1);
      seen.fill(image);
      const WindowRows<float> rows{image, x.step(1), g, v, false};
      const Index offset = (b * v.groups + group) * g.filters * n;
      double* cells = result.cells(offset);
      for (Index f = 0; f < g.filters; ++f, cells += n) {
        const float* weight = a.data() + (group * g.filters + f) * depth;
        const double start = bias ? static_cast<double>(weight[taps]) : 0.0;
        double norm = 0;
        for (Index t = 0; t < depth; ++t) norm += static_cast<double>(weight[t]) * static_cast<double>(weight[t]);
        for (Index line = 0; line < g.out[0] * g.out[1]; ++line) {
          const double* from = seen.at(line / g.out[1], line % g.out[1]);
          double *c = cells + line * width, *s = squares.data() + line * width;
          for (Index o = 0; o < width; o += L) {
            V sum = start - V{}, size = (bias ? 1.0 : 0.0) - V{};
            for (Index t = 0; t < taps; ++t) {
              const V e = load(from + offsets[static_cast<std::size_t>(t)] + o);
              sum = multiply_add<double>(static_cast<double>(weight[t]) - V{}, e, sum);
              size = multiply_add<double>(e, e, size);
            }
            if (o + L <= width) {
              store(c + o, sum);
              store(s + o, size);
            } else {
              const auto left = static_cast<std::size_t>(width - o) * sizeof(double);
              std::memcpy(c + o, &sum, left);
              std::memcpy(s + o, &size, left);
            }
          }
        }
        for (Index o = 0; o < n; ++o) {
          if (!(cells[o] * cells[o] < squares[static_cast<std::size_t>(o)] * norm * 0x1p-40)) continue;
          p.assign(weight, weight + depth);
          q.assign(static_cast<std::size_t>(depth), 1.0);
          for (Index t = 0; t < taps; ++t) {
            float one;
            q[static_cast<std::size_t>(t)] = static_cast<double>(*rows.row(t, o, 1, &one));
          }
          cells[o] = dot2(depth, p.data(), q.data());
        }
      }
      result.store(offset, g.filters * n);
    }
  return true;
}

}  // namespace opconform::conv
