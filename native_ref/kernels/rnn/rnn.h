// Recurrent layers in f64: LSTM, GRU and the simple one, general enough for every dialect's spelling.
#pragma once

#include "native_ref/core/tensor.h"

namespace opconform {

enum class Cell : std::int32_t { rnn = 0, gru, lstm };

enum class Activation : std::int32_t {
  affine = 0,        // alpha * x + beta
  relu, tanh, sigmoid,
  leaky_relu,        // x < 0 ? alpha * x : x
  thresholded_relu,  // x > alpha ? x : 0
  scaled_tanh,       // alpha * tanh(beta * x)
  hard_sigmoid,      // clamp(alpha * x + beta, 0, 1)
  elu,               // x < 0 ? alpha * (exp(x) - 1) : x
  softsign,          // x / (1 + |x|)
  softplus,          // log(1 + exp(x))
};

struct ActivationOf {
  Activation kind = Activation::tanh;
  double alpha = 0, beta = 0;
};

// Sizes: t steps, b batch, i inputs, h hidden, g gates (1, 3: update reset hidden, 4: input output forget cell).
// All arrays are C-contiguous f64; optional ones null.
struct RnnCall {
  Cell cell = Cell::rnn;
  Index t = 0, b = 0, i = 0, h = 0;
  bool backward = false;
  const double* x = nullptr;        // [t, b, i]
  const double* w = nullptr;        // [g * h, i]
  const double* r = nullptr;        // [g * h, h]
  const double* bias_w = nullptr;   // [g * h]
  const double* bias_r = nullptr;   // [g * h]
  const double* peephole = nullptr; // [3 * h], input output forget
  const std::int64_t* lengths = nullptr;  // [b]
  const double* h0 = nullptr;       // [b, h]
  const double* c0 = nullptr;       // [b, h]
  double clip = 0;                  // 0: none; bounds what enters f and g
  bool coupled = false;             // lstm: forget gate = 1 - input gate
  bool reset_after = false;         // gru: the reset gate multiplies r h + bias_r rather than h
  ActivationOf f{}, g{}, hidden{};
  double* y = nullptr;              // [t, b, h], step stride y_step; zero beyond a sequence's length
  Index y_step = 0;
  double* cells = nullptr;          // [t, b, h] or null: the cell state after every step (lstm)
  double* h_last = nullptr;         // [b, h]
  double* c_last = nullptr;         // [b, h]
};

struct RnnTable {
  std::size_t size;
  void (*rnn)(const RnnCall& call);
};

}  // namespace opconform
