// One row of x as the windows of a line of outputs see it.
#pragma once

#include <algorithm>
#include <vector>

#include "native_ref/core/tensor.h"
#include "native_ref/kernels/gemm/tile.h"

namespace opconform::pooling {

using gemm::load;
using gemm::store;
using V = gemm::Vec<double>;
constexpr Index L = gemm::kLanes<double>, W = 2 * L;  // outputs are taken W at a time

// The windows of one line of outputs over one row of x.  The row is spread: columns that are a stride apart lie side by
// side, between cells that count for nothing, so that what a tap of neighbouring windows sees is a run of cells, in
// whole vectors.
class Columns {
 public:
  static constexpr Index kLines = 16;  // rows held at a time: what was just written in pieces is slow to read back

  Columns(Index out, Index in, Index kernel, Index stride, Index dilation, Index begin, double nothing)
      : stride_(stride) {
    for (Index k = 0; k < kernel; ++k) {
      // output o sees column o * stride + at
      const Index at = k * dilation - begin, low = at >= 0 ? 0 : (-at + stride - 1) / stride;
      if (low >= out || low * stride + at >= in) continue;
      const Index rest = ((at % stride) + stride) % stride, from = (at - rest) / stride;
      std::size_t s = 0;
      while (s < spread_.size() && spread_[s].rest != rest) ++s;
      if (s == spread_.size()) spread_.push_back({rest, from, from, 0, 0, 0});
      spread_[s].from = std::min(spread_[s].from, from);
      spread_[s].last = std::max(spread_[s].last, from);
      taps_.push_back({s, from});
    }
    Index cells = 0;
    for (Spread& s : spread_) {
      s.start = cells;
      s.low = std::max(Index{0}, -s.from);
      s.high = std::min(s.last - s.from + out, (in - s.rest + stride - 1) / stride - s.from);
      cells += s.last - s.from + out + W;
    }
    pitch_ = cells;
    cells_.assign(static_cast<std::size_t>(kLines * pitch_), nothing);
    for (Tap& t : taps_) t.at = spread_[t.spread].start + t.from - spread_[t.spread].from;
  }
  Index taps() const { return static_cast<Index>(taps_.size()); }
  // Everything that outputs o to o + W see in row `slot`.
  template <class Op>
  void join(Index o, Index slot, V& c0, V& c1) const {
    const double* p = cells_.data() + slot * pitch_ + o;
    for (const Tap& t : taps_) {
      c0 = Op::of(c0, load(p + t.at));
      c1 = Op::of(c1, load(p + t.at + L));
    }
  }
  // What tap t of outputs o, o + 1, ... sees in row `slot`.
  V seen(Index t, Index o, Index slot = 0) const {
    return load(cells_.data() + slot * pitch_ + taps_[static_cast<std::size_t>(t)].at + o);
  }
  // Which column of x that is for output 0; may lie outside.
  Index column(Index t) const {
    const Tap& tap = taps_[static_cast<std::size_t>(t)];
    return tap.from * stride_ + spread_[tap.spread].rest;
  }
  template <class T>
  [[gnu::noinline]] void read(const T* row, Index slot = 0) {
    for (const Spread& s : spread_) {
      double* __restrict to = cells_.data() + slot * pitch_ + s.start + s.low;
      const T* __restrict p = row + (s.from + s.low) * stride_ + s.rest;
      const Index n = s.high - s.low;
      if (stride_ == 1)
        std::copy_n(p, n, to);
      else if (stride_ == 2)
        for (Index i = 0; i < n; ++i) to[i] = p[2 * i];
      else
        for (Index i = 0; i < n; ++i) to[i] = p[i * stride_];
    }
  }

 private:
  struct Spread {
    Index rest, from, last;  // columns rest + stride * (from ... last + out - 1)
    Index start, low, high;  // where they lie, and which of them are in x
  };
  struct Tap {
    std::size_t spread;
    Index from, at = 0;
  };
  Index stride_, pitch_;
  std::vector<Spread> spread_;
  std::vector<Tap> taps_;
  std::vector<double> cells_;
};

}  // namespace opconform::pooling
