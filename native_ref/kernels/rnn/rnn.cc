#include "native_ref/kernels/rnn/rnn.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "native_ref/core/table.h"
#include "native_ref/kernels/elementwise/math.h"
#include "native_ref/kernels/gemm/gemm.h"

namespace opconform {
namespace {

// From math.h rather than the C library: loops of these become vector code.
double sigmoid(double x) {
  // of -|x| first, so that nothing overflows and small results keep all digits
  const double e = math::exp(-std::fabs(x)), r = 1 / (1 + e);
  return x < 0 ? e * r : r;
}

// x <- activation(x), clipped before where clip > 0.
void activate(const ActivationOf& a, double clip, double* x, Index n) {
  const auto each = [&](auto&& f) {
    for (Index i = 0; i < n; ++i) x[i] = f(x[i]);
  };
  if (clip > 0) each([&](double v) { return v > clip ? clip : v < -clip ? -clip : v; });
  switch (a.kind) {
    case Activation::affine: return each([&](double v) { return a.alpha * v + a.beta; });
    case Activation::relu: return each([](double v) { return v > 0 || v != v ? v : 0.0; });
    case Activation::tanh: return each([](double v) { return math::tanh(v); });
    case Activation::sigmoid: return each([](double v) { return sigmoid(v); });
    case Activation::leaky_relu: return each([&](double v) { return v < 0 ? a.alpha * v : v; });
    case Activation::thresholded_relu: return each([&](double v) { return v > a.alpha || v != v ? v : 0.0; });
    case Activation::scaled_tanh: return each([&](double v) { return a.alpha * math::tanh(a.beta * v); });
    case Activation::hard_sigmoid:
      return each([&](double v) {
        const double y = a.alpha * v + a.beta;
        return y != y ? y : std::min(1.0, std::max(0.0, y));
      });
    case Activation::elu: return each([&](double v) { return v < 0 ? a.alpha * math::expm1(v) : v; });
    case Activation::softsign:
      return each([](double v) { return std::isinf(v) ? std::copysign(1.0, v) : v / (1 + std::abs(v)); });
    case Activation::softplus:
      return each([](double v) { return std::max(v, 0.0) + math::log1p_unit(math::exp(-std::fabs(v))); });
  }
}

void rnn(const RnnCall& c) {
  using gemm::Matrix;
  const Index gates = c.cell == Cell::lstm ? 4 : c.cell == Cell::gru ? 3 : 1, h = c.h, width = gates * h;
  const auto size = [](Index n) { return static_cast<std::size_t>(n); };
  std::vector<double> in(size(c.t * c.b * width)), back(size(c.b * width)), state(size(c.b * h)), cell(size(c.b * h)),
      gate(size(4 * h));
  // turned once: the products run along their rows
  const auto turned = [&](const double* w, Index columns) {
    std::vector<double> t(size(width * columns));
    for (Index k = 0; k < width; ++k)
      for (Index i = 0; i < columns; ++i) t[size(i * width + k)] = w[k * columns + i];
    return t;
  };
  const auto product = [&](Index rows, Index depth, const double* a, const std::vector<double>& b, double* y) {
    const Matrix<double> left{a, depth, 1}, right{b.data(), width, 1};
    if (rows <= 4 && depth > 0)
      gemm::multiply_thin<false>(rows, width, depth, left, right, y, width);
    else
      gemm::multiply_plain(rows, width, depth, left, gemm::MatrixRows<double>(right), y, width);
  };
  const std::vector<double> r_turned = turned(c.r, h);
  // what the inputs give, for all steps in one product
  product(c.t * c.b, c.i, c.x, turned(c.w, c.i), in.data());
  if (c.bias_w)
    for (Index n = 0; n < c.t * c.b; ++n)
      for (Index k = 0; k < width; ++k) in[size(n * width + k)] += c.bias_w[k];
  if (c.h0) std::copy_n(c.h0, c.b * h, state.data());
  if (c.c0) std::copy_n(c.c0, c.b * h, cell.data());
  for (Index s = 0; s < c.t; ++s)
    for (Index b = 0; b < c.b; ++b) std::fill_n(c.y + s * c.y_step + b * h, h, 0.0);
  if (c.cells) std::fill_n(c.cells, c.t * c.b * h, 0.0);
  for (Index s = 0; s < c.t; ++s) {
    product(c.b, h, state.data(), r_turned, back.data());
    for (Index b = 0; b < c.b; ++b) {
      const Index length = c.lengths ? std::min<Index>(c.lengths[b], c.t) : c.t;
      if (s >= length) continue;
      const Index step = c.backward ? length - 1 - s : s;  // reversal stays inside the sequence
      const double* x = in.data() + (step * c.b + b) * width;
      double* r = back.data() + b * width;
      double* hs = state.data() + b * h;
      double* cs = cell.data() + b * h;
      double* y = c.y + step * c.y_step + b * h;
      const auto rest = [&](Index k) { return r[k] + (c.bias_r ? c.bias_r[k] : 0); };
      double *g0 = gate.data(), *g1 = g0 + h, *g2 = g1 + h, *g3 = g2 + h;
      // x + r of one gate
      const auto enter = [&](Index g, double* to) {
        for (Index k = 0; k < h; ++k) to[k] = x[g * h + k] + rest(g * h + k);
      };
      const auto peep = [&](Index g, double* to) {
        if (c.peephole)
          for (Index k = 0; k < h; ++k) to[k] += c.peephole[g * h + k] * cs[k];
      };
      if (c.cell == Cell::rnn) {
        enter(0, y);
        activate(c.f, c.clip, y, h);
      } else if (c.cell == Cell::lstm) {
        enter(0, g0), peep(0, g0);
        activate(c.f, c.clip, g0, h);
        if (c.coupled) {
          for (Index k = 0; k < h; ++k) g2[k] = 1 - g0[k];
        } else {
          enter(2, g2), peep(2, g2);
          activate(c.f, c.clip, g2, h);
        }
        enter(3, g3);
        activate(c.g, c.clip, g3, h);
        for (Index k = 0; k < h; ++k) cs[k] = g2[k] * cs[k] + g0[k] * g3[k];
        enter(1, g1), peep(1, g1);
        activate(c.f, c.clip, g1, h);
        std::copy_n(cs, h, y);
        activate(c.hidden, 0, y, h);
        for (Index k = 0; k < h; ++k) y[k] *= g1[k];
        if (c.cells) std::copy_n(cs, h, c.cells + (step * c.b + b) * h);
      } else {
        enter(0, g0);
        activate(c.f, c.clip, g0, h);
        enter(1, g1);
        activate(c.f, c.clip, g1, h);
        for (Index k = 0; k < h; ++k) {
          if (c.reset_after)
            g2[k] = x[2 * h + k] + g1[k] * rest(2 * h + k);
          else
            g3[k] = g1[k] * hs[k];
        }
        if (!c.reset_after)
          for (Index k = 0; k < h; ++k) {
            double v = x[2 * h + k] + (c.bias_r ? c.bias_r[2 * h + k] : 0);
            for (Index q = 0; q < h; ++q) v += g3[q] * c.r[(2 * h + k) * h + q];
            g2[k] = v;
          }
        activate(c.g, c.clip, g2, h);
        for (Index k = 0; k < h; ++k) y[k] = (1 - g0[k]) * g2[k] + g0[k] * hs[k];
      }
      std::copy_n(y, h, hs);
    }
  }
  if (c.h_last) std::copy_n(state.data(), c.b * h, c.h_last);
  if (c.c_last) std::copy_n(cell.data(), c.b * h, c.c_last);
}

}  // namespace

OPCONFORM_TABLE const RnnTable opconform_rnn{sizeof(RnnTable), rnn};

}  // namespace opconform
