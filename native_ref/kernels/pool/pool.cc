#include "native_ref/kernels/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"
#include "native_ref/kernels/pool/columns.h"

namespace opconform {
namespace {

using namespace pooling;
using Mask = decltype(V{} < V{});

constexpr double kLowest = -std::numeric_limits<double>::infinity();

inline V choose(Mask m, V a, V b) { return (V)((m & (Mask)a) | (~m & (Mask)b)); }

struct Larger {
  static V of(V c, V e) { return e > c ? e : c; }
};
struct LargerOrNaN {
  static V of(V c, V e) { return choose((e > c) | (e != e), e, c); }
};
struct Sum {
  static V of(V c, V e) { return c + e; }
};

// Two or three rows to one, in whole vectors.
template <class Op, class A, class T>
void join(const void* first, const void* second, const void* third, double* to, Index n) {
  const auto at = [](const auto* p) { return gemm::load_as<double>(p); };
  const auto* a = static_cast<const A*>(first);
  const auto *b = static_cast<const T*>(second), *c = static_cast<const T*>(third);
  if (c)
    for (Index i = 0; i < n; i += L) store(to + i, Op::of(Op::of(at(a + i), at(b + i)), at(c + i)));
  else
    for (Index i = 0; i < n; i += L) store(to + i, Op::of(at(a + i), at(b + i)));
}
// A plane of any type: how its rows are joined, the first ones and more to what is joined already, and read.
struct Plane {
  const char* data;
  Index bytes;
  void (*first)(const void*, const void*, const void*, double*, Index);
  void (*more)(const void*, const void*, const void*, double*, Index);
  void (*read)(Columns&, const void* row, Index slot);
};
template <class Op, class T>
Plane plane_of(const T* x) {
  const auto read = [](Columns& to, const void* row, Index slot) { to.read(static_cast<const T*>(row), slot); };
  return {reinterpret_cast<const char*>(x), sizeof(T), join<Op, T, T>, join<Op, double, T>, read};
}
template <class T>
[[gnu::noinline]] bool any_nan(const T* x, Index n) {
  constexpr Index K = gemm::kLanes<T>;
  decltype(load(x) != load(x)) m{};
  Index i = 0;
  for (; i + K <= n; i += K) m |= load(x + i) != load(x + i);
  bool any = false;
  for (Index l = 0; l < K; ++l) any |= m[l] != 0;
  for (; i < n; ++i) any |= std::isnan(x[i]);
  return any;
}

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

  // Where row (i, j) of a line of windows lies in the plane.
  Index row_of(const Range& a, const Range& b, Index i, Index j) const {
    return ((a.first + i * v.dilation[0]) * in[1] + b.first + j * v.dilation[1]) * in[2];
  }

  // f(cells of the result, z, h, rows) for every line of outputs; rows(g) calls g(index in the plane) for each row
  // of x that its windows see.
  template <class F>
  void each_line(F&& f) {
    double* cells = result.data();
    for (const Range& a : z)
      for (const Range& b : h) {
        f(cells, a, b, [&](auto&& g) {
          for (Index i = 0; i < a.count; ++i)
            for (Index j = 0; j < b.count; ++j) g(row_of(a, b, i, j));
        });
        cells += out[2];
      }
  }
  // For an operation in any order: the rows that a line of windows sees are joined to one first.  finish(value, output
  // of the line, z, h) makes the result of it.  x: the plane, with room to read behind it.
  template <class Op, class Finish>
  [[gnu::noinline]] void fold(const Plane& x, V start, const Finish& finish) {
    struct Line {
      double* cells;
      const Range *a, *b;
      bool seen;  // whether there is any row
    };
    std::array<Line, Columns::kLines> lines;
    Index held = 0;
    const auto reduce = [&] {
      for (Index slot = 0; slot < held; ++slot) {
        const Line line = lines[size(slot)];
        for (Index o = 0; o < out[2]; o += W) {
          V c0 = start, c1 = start;
          if (line.seen) columns.join<Op>(o, slot, c0, c1);
          store(line.cells + o, finish(c0, o, *line.a, *line.b));
          store(line.cells + o + L, finish(c1, o + L, *line.a, *line.b));
        }
      }
      held = 0;
    };
    double* cells = result.data();
    for (const Range& a : z)
      for (const Range& b : h) {
        lines[size(held)] = {cells, &a, &b, see(x, a, b, held)};
        if (++held == Columns::kLines) reduce();
        cells += out[2];
      }
    reduce();
  }
  // Joins the rows that a line of windows sees, and reads the result into `slot`; false where there is none.
  [[gnu::noinline]] bool see(const Plane& x, const Range& a, const Range& b, Index slot) {
    const char *first = nullptr, *next = nullptr;
    bool joined = false;
    const auto take = [&](const char* more) {
      joined ? x.more(folded.data(), next, more, folded.data(), in[2])
             : x.first(first, next, more, folded.data(), in[2]);
      joined = true;
      next = nullptr;
    };
    for (Index i = 0; i < a.count; ++i)
      for (Index j = 0; j < b.count; ++j) {
        const char* row = x.data + row_of(a, b, i, j) * x.bytes;
        if (!first)
          first = row;
        else if (!next)
          next = row;
        else
          take(row);
      }
    if (next) take(nullptr);
    if (joined)
      columns.read(folded.data(), slot);
    else if (first)
      x.read(columns, first, slot);  // a single row is used where it lies
    return first != nullptr;
  }
  // Sums with their rounding errors, tap by tap.  finish as for ``fold``.
  template <class Finish>
  [[gnu::noinline]] void sum(const Finish& finish) {
    std::vector<double> sums(size(out[2] + L)), lost(sums.size());
    each_line([&](double* cells, const Range& a, const Range& b, auto&& rows) {
      std::fill(sums.begin(), sums.end(), 0.0);
      std::fill(lost.begin(), lost.end(), 0.0);
      rows([&](Index row) {
        columns.read(plane.data() + row);
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
  [[gnu::noinline]] void largest(std::int64_t* places) {
    std::vector<double> best(size(out[2] + L));
    std::vector<std::int64_t> where(best.size());
    Mask lane{};
    for (Index i = 0; i < L; ++i) lane[i] = i * v.stride[2];
    each_line([&](double* cells, const Range&, const Range&, auto&& rows) {
      std::fill(best.begin(), best.end(), kLowest);
      std::fill(where.begin(), where.end(), -1);
      rows([&](Index row) {
        columns.read(plane.data() + row);
        for (Index o = 0; o < out[2]; o += L) {
          V b = load(best.data() + o);
          Mask w;
          std::memcpy(&w, where.data() + o, sizeof w);
          for (Index t = 0; t < columns.taps(); ++t) {
            const V e = columns.seen(t, o);
            const Mask at = lane + (columns.column(t) + o * v.stride[2]);
            const Mask take = (at >= 0) & (at < in[2]) & ((e > b) | (w < 0) | ((e != e) & (b == b)));
            b = choose(take, e, b);
            w = (take & (at + row)) | (~take & w);
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
  const auto itself = [](V c, Index, const Range&, const Range&) { return c; };
  const auto fold = [&](const auto* plane) {
    if (kind != Pooling::max) return p.fold<Sum>(plane_of<Sum>(plane), V{}, mean);
    any_nan(plane, p.inputs()) ? p.fold<LargerOrNaN>(plane_of<LargerOrNaN>(plane), kLowest - V{}, itself)
                               : p.fold<Larger>(plane_of<Larger>(plane), kLowest - V{}, itself);
  };
  // a few narrow elements add up exactly, or nearly, in f64; many of them, or f64 ones, take their errors along
  const bool average = kind == Pooling::average || padded;
  const bool careful = average && (x.dtype == DType::f64 || v.kernel[0] * v.kernel[1] * v.kernel[2] > 64);
  // f32 is read where it lies, but for the last plane, behind which there is nothing to read
  const bool in_place = x.dtype == DType::f32 && x.contiguous() && p.inputs() >= L && !positions && !careful &&
                        kind != Pooling::lp && reinterpret_cast<std::uintptr_t>(x.data) % alignof(float) == 0;
  const StoreF64 write = store_f64(y.dtype);
  Reader reader(x);
  char* to = y.data;
  std::int64_t* where = positions ? reinterpret_cast<std::int64_t*>(positions->data) : nullptr;
  const Index planes = x.dim(0) * x.dim(1);
  for (Index i = 0; i < planes; ++i, to += p.outputs() * y.bytes()) {
    if (in_place && i + 1 < planes) {
      fold(reinterpret_cast<const float*>(x.data) + i * p.inputs());
      write(p.result.data(), to, y.bytes(), p.outputs());
      continue;
    }
    if (in_place)
      load_f64(x.dtype)(x.data + i * p.inputs() * x.bytes(), x.bytes(), p.inputs(), p.plane.data());
    else
      reader.next(p.plane.data(), p.inputs());
    if (where) {
      p.largest(where);
      where += p.outputs();
    } else if (kind == Pooling::lp) {
      for (double& e : p.plane) e = v.p == 1 ? std::abs(e) : v.p == 2 ? e * e : std::pow(std::abs(e), v.p);
      p.sum(root);
    } else if (careful) {
      p.sum(mean);
    } else {
      fold(p.plane.data());
    }
    write(p.result.data(), to, y.bytes(), p.outputs());
  }
}

}  // namespace

OPCONFORM_TABLE const PoolTable opconform_pool{sizeof(PoolTable), pool};

}  // namespace opconform
