#include "native_ref/kernels/conv/conv.h"

#include "native_ref/core/table.h"
#include "native_ref/kernels/gemm/gemm.h"
#include "native_ref/kernels/gemm/operand.h"
#include "native_ref/kernels/gemm/result.h"

namespace opconform {
namespace {

using namespace gemm;

// Sizes with the spatial axes filled up to three, and element strides of x.
struct Geometry {
  std::array<Index, 3> in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1}, step{0, 0, 0};
  Index batch = 0, channels = 0, filters = 0;  // channels and filters of one group
  Index taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  Index inputs() const { return in[0] * in[1] * in[2]; }
  Index outputs() const { return out[0] * out[1] * out[2]; }
};

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

// The image as a matrix [channels * taps (+ 1), outputs], made row by row and never stored: row (c, kz, ky, kx)
// holds what
// that tap of the window sees at every output position.  The last row, all ones, carries the bias.
template <class T>
struct WindowRows {
  using Element = T;
  const T* x;  // of this image and group
  Index channel_step;
  const Geometry& g;
  const Window& v;
  bool plain;  // windows of one element, no stride, no padding, contiguous: rows lie ready in memory

  const T* row(Index k, Index j, Index n, T* scratch) const {
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
};

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

// A product of a matrix of T with rows from elsewhere, in cells of C.
template <class T, class C, class Rows>
using Product = void (*)(Index m, Index n, Index k, const Matrix<T>& a, const Rows& b, C* c, Index ldc);

// merged: whether the bias is one more term of the product.
template <class T, class C>
void convolve(const Tensor& tx, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y, bool merged,
              Product<T, C, WindowRows<T>> product) {
  const Operand<T> x(tx);
  const Geometry g = geometry(x, w, y, v.groups);
  // floats take the bias as a term of the sum, so that it shares its care; integers add it exactly afterwards
  const std::vector<T> a = weights_with_bias<T>(w, merged ? bias : nullptr);
  const Index depth = g.channels * g.taps() + (merged && bias ? 1 : 0), n = g.outputs();
  std::vector<C> added(!merged && bias ? static_cast<std::size_t>(w.dim(0)) : 0);
  if (!merged && bias) Reader(*bias).next(added.data(), w.dim(0));
  Result<C> result(y, g.filters * n);
  bool plain = g.taps() == 1 && g.in == g.out;
  for (std::size_t i = 3, step = 1; i-- > 0; step *= static_cast<std::size_t>(g.in[i]))
    plain = plain && v.begin[i] == 0 && (g.in[i] == 1 || (v.stride[i] == 1 && g.step[i] == static_cast<Index>(step)));
  for (Index b = 0; b < g.batch; ++b)
    for (Index group = 0; group < v.groups; ++group) {
      const T* image = x.data() + b * x.step(0) + group * g.channels * x.step(1);
      const WindowRows<T> rows{image, x.step(1), g, v, plain};
      const Index offset = (b * v.groups + group) * g.filters * n;
      product(g.filters, n, depth, Matrix<T>{a.data() + group * g.filters * depth, depth, 1}, rows,
          result.cells(offset), n);
      if (!added.empty())
        for (Index i = 0; i < g.filters * n; ++i)
          result.cells(offset)[i] += added[static_cast<std::size_t>(group * g.filters + i / n)];
      result.store(offset, g.filters * n);
    }
}

// One channel of x as the windows see it, in f64: padding filled in, cut where no window reaches, and the columns sorted by
// their remainder modulo the stride, so that neighbouring outputs read neighbours for every tap.
class Seen {
 public:
  Seen(const Geometry& g, const Window& v) : g_(g), v_(v) {
    for (std::size_t i = 0; i < 3; ++i) span_[i] = (g.out[i] - 1) * v.stride[i] + (g.kernel[i] - 1) * v.dilation[i] + 1;
    width_ = (span_[2] + v.stride[2] - 1) / v.stride[2] + kSlack;
    cells_.resize(static_cast<std::size_t>(v.stride[2] * span_[0] * span_[1] * width_));
  }
  void fill(const float* image) {
    for (Index z = 0; z < span_[0]; ++z)
      for (Index y = 0; y < span_[1]; ++y) {
        const Index iz = z - v_.begin[0], iy = y - v_.begin[1];
        if (iz < 0 || iz >= g_.in[0] || iy < 0 || iy >= g_.in[1]) continue;  // stays zero
        const float* from = image + iz * g_.step[0] + iy * g_.step[1];
        for (Index phase = 0; phase < v_.stride[2]; ++phase) {
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
  // Where a tap lies from what the first tap sees, and the latter at output (oz, oy, 0), the outputs beside it following;
  // readable kSlack beyond the last.
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
  Index width_;
  std::vector<double> cells_;
};

// One channel per group: every tap times a row of outputs, sums kept in registers; nothing is packed.  The sums are plain
// f64, with the squares of what each window saw beside them, and redone by Dot2 where that is not enough.
void convolve_depthwise(const Tensor& tx, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y) {
  using V = Vec<double>;
  constexpr Index L = kLanes<double>;
  const Operand<float> x(tx);
  const Geometry g = geometry(x, w, y, v.groups);
  const std::vector<float> a = weights_with_bias<float>(w, bias);
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
}

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
                         bool carry, Product<T, C, Matrix<T>> product) {
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
              Matrix<T>{dense.data(), n, 1}, part.data(), n);
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

// The integer ways wrap: sums of unsigned cells, read as signed.
const auto wrapped = [](Index m, Index n, Index k, const auto& a, const auto& b, std::int64_t* c, Index ldc) {
  multiply<std::uint64_t>(m, n, k, a, b, reinterpret_cast<std::uint64_t*>(c), ldc);
};
const auto screened = [](Index m, Index n, Index k, const auto& a, const auto& b, auto* c, Index ldc) {
  multiply_screened(m, n, k, a, b, c, ldc);
};
const auto twice = [](Index m, Index n, Index k, const auto& a, const auto& b, auto* c, Index ldc) {
  multiply_dot2(m, n, k, a, b, c, ldc);
};
const auto bytes = [](Index m, Index n, Index k, const auto& a, const auto& b, auto* c, Index ldc) {
  multiply<float>(m, n, k, a, b, c, ldc);
};
const auto halves = [](Index m, Index n, Index k, const auto& a, const auto& b, auto* c, Index ldc) {
  multiply<double>(m, n, k, a, b, c, ldc);
};

Way way_of(const Tensor& x, const Tensor& w, const Tensor* bias, Index depth) {
  const Way plain = way(x.dtype, w.dtype, depth);
  return bias && plain == Way::screened && bias->dtype == DType::f64 ? Way::dot2 : plain;
}

void conv(const Tensor& x, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y) {
  if (y.size() == 0) return;
  switch (way_of(x, w, bias, w.dim(0) ? w.size() / w.dim(0) : 0)) {
    case Way::screened:
      if (w.dim(1) == 1 && w.dim(0) / v.groups <= 2) return convolve_depthwise(x, w, bias, v, y);
      return convolve<float, double>(x, w, bias, v, y, true, screened);
    case Way::dot2: return convolve<double, double>(x, w, bias, v, y, true, twice);
    case Way::bytes: return convolve<float, std::int64_t>(x, w, bias, v, y, false, bytes);
    case Way::halves: return convolve<double, double>(x, w, bias, v, y, false, halves);
    case Way::integers: return convolve<std::int64_t, std::int64_t>(x, w, bias, v, y, false, wrapped);
  }
}

void conv_transpose(const Tensor& x, const Tensor& w, const Tensor* bias, const Window& v, const Tensor& y) {
  if (y.size() == 0) return;
  switch (way_of(x, w, bias, w.dim(0))) {
    case Way::screened: return convolve_transposed<float, double>(x, w, bias, v, y, false, screened);
    case Way::dot2: return convolve_transposed<double, double>(x, w, bias, v, y, true, twice);
    case Way::bytes: return convolve_transposed<float, std::int64_t>(x, w, bias, v, y, false, bytes);
    case Way::halves: return convolve_transposed<double, double>(x, w, bias, v, y, false, halves);
    case Way::integers: return convolve_transposed<std::int64_t, std::int64_t>(x, w, bias, v, y, false, wrapped);
  }
}

}  // namespace

OPCONFORM_TABLE const ConvTable opconform_conv{sizeof(ConvTable), conv, conv_transpose};

}  // namespace opconform
