#include "native_ref/kernels/rnn/rnn.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "native_ref/core/table.h"
#include "native_ref/kernels/gemm/gemm.h"

namespace opconform {
namespace {

double activate(const ActivationOf& a, double x) {
  switch (a.kind) {
    case Activation::affine: return a.alpha * x + a.beta;
    case Activation::relu: return x > 0 || x != x ? x : 0;
    case Activation::tanh: return std::tanh(x);
    case Activation::sigmoid: {
      // of -|x| first, so that nothing overflows and small results keep all digits
      const double e = std::exp(-std::abs(x));
      return x != x ? x : x >= 0 ? 1 / (1 + e) : e / (1 + e);
    }
    case Activation::leaky_relu: return x < 0 ? a.alpha * x : x;
    case Activation::thresholded_relu: return x > a.alpha || x != x ? x : 0;
    case Activation::scaled_tanh: return a.alpha * std::tanh(a.beta * x);
    case Activation::hard_sigmoid: {
      const double v = a.alpha * x + a.beta;
      return v != v ? v : std::min(1.0, std::max(0.0, v));
    }
    case Activation::elu: return x < 0 ? a.alpha * std::expm1(x) : x;
    case Activation::softsign: return std::isinf(x) ? std::copysign(1.0, x) : x / (1 + std::abs(x));
    case Activation::softplus: return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  return x;
}

void rnn(const RnnCall& c) {
  using gemm::Matrix;
  const Index gates = c.cell == Cell::lstm ? 4 : c.cell == Cell::gru ? 3 : 1, h = c.h, width = gates * h;
  const auto size = [](Index n) { return static_cast<std::size_t>(n); };
  const auto clip = [&](double v) { return c.clip > 0 ? (v > c.clip ? c.clip : v < -c.clip ? -c.clip : v) : v; };
  std::vector<double> in(size(c.t * c.b * width)), back(size(c.b * width)), state(size(c.b * h)), cell(size(c.b * h)),
      mixed;
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
      gemm::multiply<double, double>(rows, width, depth, left, right, y, width);
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
      if (c.cell == Cell::rnn) {
        for (Index k = 0; k < h; ++k) y[k] = activate(c.f, clip(x[k] + rest(k)));
      } else if (c.cell == Cell::lstm) {
        const double* p = c.peephole;
        for (Index k = 0; k < h; ++k) {
          const auto gate = [&](Index g) { return x[g * h + k] + rest(g * h + k); };
          const double i = activate(c.f, clip(gate(0) + (p ? p[k] * cs[k] : 0)));
          const double f = c.coupled ? 1 - i : activate(c.f, clip(gate(2) + (p ? p[2 * h + k] * cs[k] : 0)));
          const double fresh = f * cs[k] + i * activate(c.g, clip(gate(3)));
          const double o = activate(c.f, clip(gate(1) + (p ? p[h + k] * fresh : 0)));
          cs[k] = fresh;
          y[k] = o * activate(c.hidden, fresh);
        }
        if (c.cells) std::copy_n(cs, h, c.cells + (step * c.b + b) * h);
      } else {
        mixed.assign(size(3 * h), 0);  // update gate, reset * state, candidate
        for (Index k = 0; k < h; ++k) {
          mixed[size(k)] = activate(c.f, clip(x[k] + rest(k)));
          const double reset = activate(c.f, clip(x[h + k] + rest(h + k)));
          if (c.reset_after)
            mixed[size(2 * h + k)] = x[2 * h + k] + reset * rest(2 * h + k);
          else
            mixed[size(h + k)] = reset * hs[k];
        }
        for (Index k = 0; k < h; ++k) {
          double v = mixed[size(2 * h + k)];
          if (!c.reset_after) {
            v = x[2 * h + k] + (c.bias_r ? c.bias_r[2 * h + k] : 0);
            for (Index q = 0; q < h; ++q) v += mixed[size(h + q)] * c.r[(2 * h + k) * h + q];
          }
          const double z = mixed[size(k)];
          y[k] = (1 - z) * activate(c.g, clip(v)) + z * hs[k];
        }
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
