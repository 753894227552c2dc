#include "native_ref/kernels/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"
#include "native_ref/kernels/gemm/tile.h"

namespace opconform {
namespace {

using gemm::load;
using gemm::store;
using V = gemm::Vec<double>;
constexpr Index L = gemm::kLanes<double>, W = 2 * L;  // outputs are taken W at a time
using Mask = decltype(V{} < V{});

constexpr double kLowest = -std::numeric_limits<double>::infinity();

inline V choose(Mask m, V a, V b) { return (V)((m & (Mask)a) | (~m & (Mask)b)); }
inline V larger(V c, V e) { return choose((e > c) | (e != e), e, c); }

struct Range {  // the taps of one window on one axis that meet x, and how many meet x or its declared padding
  Index first, count, padded;  // position of the first tap in x, taps
};

std::vector<Range> ranges(Index out, Index in, Index kernel, Index stride, Index dilation, Index begin, Index end) {
  std::vector<Range> r(static_cast<std::size_t>(out));
  for (Index o = 0; o < out; ++o) {
    Range& w = r[static_cast<std::size_t>(o)];
    const Index at = o * stride - begin;
    w = {0, 0, 0};
    for (Index k = 0; k < kernel; ++k) {
      const Index i = at + k * dilation;
      if (i >= -begin && i < in + end) ++w.padded;
      if (i < 0 || i >= in) continue;
      if (w.count++ == 0) w.first = i;
    }
  }
  return r;
}

// The windows of one line of outputs over one row of x.  The row is spread: columns that are a stride apart lie side by
// side, between cells that count for nothing, so that what a tap of neighbouring windows sees is a run of cells, in
// whole vectors.
class Columns {
 public:
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
    cells_.assign(static_cast<std::size_t>(cells), nothing);
    for (Tap& t : taps_) t.at = spread_[t.spread].start + t.from - spread_[t.spread].from;
  }
  Index taps() const { return static_cast<Index>(taps_.size()); }
  // What tap t of outputs o, o + 1, ... sees.
  V seen(Index t, Index o) const { return load(cells_.data() + taps_[static_cast<std::size_t>(t)].at + o); }
  // Which column of x that is for output 0; may lie outside.
  Index column(Index t) const {
    const Tap& tap = taps_[static_cast<std::size_t>(t)];
    return tap.from * stride_ + spread_[tap.spread].rest;
  }
  void read(const double* row) {
    for (const Spread& s : spread_) {
      double* __restrict to = cells_.data() + s.start + s.low;
      const double* __restrict p = row + (s.from + s.low) * stride_ + s.rest;
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
  Index stride_;
  std::vector<Spread> spread_;
  std::vector<Tap> taps_;
  std::vector<double> cells_;
};

// Pooling of x, plane by plane.
struct Pool {
  Pool(const Tensor& x, const PoolWindow& window, const Tensor& y, double nothing)
      : v(window), in(spatial(x)), out(spatial(y)),
        z(ranges(out[0], in[0], v.kernel[0], v.stride[0], v.dilation[0], v.begin[0], v.end[0])),
        h(ranges(out[1], in[1], v.kernel[1], v.stride[1], v.dilation[1], v.begin[1], v.end[1])),
        columns(out[2], in[2], v.kernel[2], v.stride[2], v.dilation[2], v.begin[2], nothing),
        plane(size(in[0] * in[1] * in[2] + L)), result(size(out[0] * out[1] * out[2] + W)), folded(size(in[2] + L)) {}

  static std::size_t size(Index n) { return static_cast<std::size_t>(n); }
  static std::array<Index, 3> spatial(const Tensor& t) {
    std::array<Index, 3> s{1, 1, 1};
    for (int i = 2; i < t.rank; ++i) s[size(3 - t.rank + i)] = t.dim(i);
    return s;
  }
  Index inputs() const { return in[0] * in[1] * in[2]; }
  Index outputs() const { return out[0] * out[1] * out[2]; }

  // f(cells of the result, z, h, rows) for every line of outputs; rows(g) calls g(row, its index in the plane) for each
  // row of x that its windows see.
  template <class F>
  void each_line(F&& f) {
    double* cells = result.data();
    for (const Range& a : z)
      for (const Range& b : h) {
        f(cells, a, b, [&](auto&& g) {
          for (Index i = 0; i < a.count; ++i)
            for (Index j = 0; j < b.count; ++j) {
              const Index row = ((a.first + i * v.dilation[0]) * in[1] + b.first + j * v.dilation[1]) * in[2];
              g(plane.data() + row, row);
            }
        });
        cells += out[2];
      }
  }
  // For an operation in any order: the rows that a line of windows sees are joined to one first.  finish(value, output
  // of the line, z, h) makes the result of it.
  template <class Op, class Finish>
  void fold(V start, Op&& op, Finish&& finish) {
    each_line([&](double* cells, const Range& a, const Range& b, auto&& rows) {
      const double* all = nullptr;
      rows([&](const double* row, Index) {
        if (all == nullptr) {
          all = row;  // a single row is used where it lies
          return;
        }
        for (Index i = 0; i < in[2]; i += L) store(folded.data() + i, op(load(all + i), load(row + i)));
        all = folded.data();
      });
      if (all) columns.read(all);
      for (Index o = 0; o < out[2]; o += W) {
        V c0 = start, c1 = start;
        for (Index t = 0; all && t < columns.taps(); ++t) {
          c0 = op(c0, columns.seen(t, o));
          c1 = op(c1, columns.seen(t, o + L));
        }
        store(cells + o, finish(c0, o, a, b));
        store(cells + o + L, finish(c1, o + L, a, b));
      }
    });
  }
  // Sums with their rounding errors, tap by tap.  finish as for ``fold``.
  template <class Finish>
  void sum(Finish&& finish) {
    std::vector<double> sums(size(out[2] + L)), lost(sums.size());
    each_line([&](double* cells, const Range& a, const Range& b, auto&& rows) {
      std::fill(sums.begin(), sums.end(), 0.0);
      std::fill(lost.begin(), lost.end(), 0.0);
      rows([&](const double* row, Index) {
        columns.read(row);
        for (Index o = 0; o < out[2]; o += L) {
          V s = load(sums.data() + o), l = load(lost.data() + o);
          for (Index t = 0; t < columns.taps(); ++t) {
            const V e = columns.seen(t, o), u = s + e, q = u - s;
            l += (s - (u - q)) + (e - q);
            s = u;
          }
          store(sums.data() + o, s), store(lost.data() + o, l);
        }
      });
      for (Index o = 0; o < out[2]; o += L) {
        const V s = load(sums.data() + o), both = s + load(lost.data() + o);
        store(cells + o, finish(choose(s - s == s - s, both, s), o, a, b));  // an infinity or NaN decides alone
      }
    });
  }
  // The largest with its place in the plane: the first of equals, of NaN.
  void largest(std::int64_t* places) {
    std::vector<double> best(size(out[2] + L));
    std::vector<std::int64_t> where(best.size());
    Mask lane{};
    for (Index i = 0; i < L; ++i) lane[i] = i * v.stride[2];
    each_line([&](double* cells, const Range&, const Range&, auto&& rows) {
      std::fill(best.begin(), best.end(), kLowest);
      std::fill(where.begin(), where.end(), -1);
      rows([&](const double* row, Index first) {
        columns.read(row);
        for (Index o = 0; o < out[2]; o += L) {
          V b = load(best.data() + o);
          Mask w;
          std::memcpy(&w, where.data() + o, sizeof w);
          for (Index t = 0; t < columns.taps(); ++t) {
            const V e = columns.seen(t, o);
            const Mask at = lane + (columns.column(t) + o * v.stride[2]);
            const Mask take = (at >= 0) & (at < in[2]) & ((e > b) | (w < 0) | ((e != e) & (b == b)));
            b = choose(take, e, b);
            w = (take & (at + first)) | (~take & w);
          }
          store(best.data() + o, b);
          std::memcpy(where.data() + o, &w, sizeof w);
        }
      });
      std::copy_n(best.begin(), out[2], cells);
      places = std::copy_n(where.begin(), out[2], places);
    });
  }

  const PoolWindow& v;
  std::array<Index, 3> in, out;
  std::vector<Range> z, h;
  Columns columns;
  std::vector<double> plane, result, folded;  // the vectors' last reach beyond what counts
};

void pool(Pooling kind, const Tensor& x, const PoolWindow& v, const Tensor& y, const Tensor* positions) {
  if (y.size() == 0) return;
  const bool max = kind == Pooling::max || positions;
  Pool p(x, v, y, max ? kLowest : 0.0);
  const bool padded = kind == Pooling::average_with_padding;
  std::vector<double> across(Pool::size(p.out[2] + W), 1.0);
  {
    const auto w = ranges(p.out[2], p.in[2], v.kernel[2], v.stride[2], v.dilation[2], v.begin[2], v.end[2]);
    for (std::size_t o = 0; o < w.size(); ++o) across[o] = static_cast<double>(padded ? w[o].padded : w[o].count);
  }
  const auto mean = [&](V s, Index o, const Range& a, const Range& b) {
    const Index n = padded ? a.padded * b.padded : a.count * b.count;
    return s / (load(across.data() + o) * static_cast<double>(n));
  };
  const auto root = [&](V s, Index, const Range&, const Range&) {
    for (Index i = 0; i < L && v.p != 1; ++i) s[i] = v.p == 2 ? std::sqrt(s[i]) : std::pow(s[i], 1 / v.p);
    return s;
  };
  // a few narrow elements add up exactly, or nearly, in f64; many of them, or f64 ones, take their errors along
  const bool careful = x.dtype == DType::f64 || v.kernel[0] * v.kernel[1] * v.kernel[2] > 64;
  const StoreF64 write = store_f64(y.dtype);
  Reader reader(x);
  char* to = y.data;
  std::int64_t* where = positions ? reinterpret_cast<std::int64_t*>(positions->data) : nullptr;
  for (Index nc = x.dim(0) * x.dim(1); nc > 0; --nc, to += p.outputs() * y.bytes()) {
    reader.next(p.plane.data(), p.inputs());
    if (where) {
      p.largest(where);
      where += p.outputs();
    } else if (kind == Pooling::max) {
      p.fold(kLowest - V{}, larger, [](V c, Index, const Range&, const Range&) { return c; });
    } else if (kind == Pooling::lp) {
      for (double& e : p.plane) e = v.p == 1 ? std::abs(e) : v.p == 2 ? e * e : std::pow(std::abs(e), v.p);
      p.sum(root);
    } else if (careful) {
      p.sum(mean);
    } else {
      p.fold(V{}, [](V c, V e) { return c + e; }, mean);
    }
    write(p.result.data(), to, y.bytes(), p.outputs());
  }
}

}  // namespace

OPCONFORM_TABLE const PoolTable opconform_pool{sizeof(PoolTable), pool};

}  // namespace opconform
