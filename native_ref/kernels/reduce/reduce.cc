#include "native_ref/kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"
#include "native_ref/kernels/reduce/cells.h"

namespace opconform {
namespace {

using namespace reducing;

// A set of axes, neighbours merged where memory allows, walked like an odometer.
struct Axes {
  int rank = 0;
  std::array<Index, kMaxRank> shape{}, stride{};

  void add(Index n, Index step) {
    if (n == 1) return;
    if (rank > 0 && stride[at(rank - 1)] == step * n) {
      shape[at(rank - 1)] *= n;
      stride[at(rank - 1)] = step;
    } else {
      shape[at(rank)] = n;
      stride[at(rank)] = step;
      ++rank;
    }
  }
  Index size() const {
    Index n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[at(i)];
    return n;
  }
  Index inner() const { return rank ? shape[at(rank - 1)] : 1; }
  Index inner_step() const { return rank ? stride[at(rank - 1)] : 0; }
  // f(pointer) for every position of all axes but the last, in C order.
  template <class F>
  void each_run(const char* base, F&& f) const {
    std::array<Index, kMaxRank> i{};
    const Index n = size();
    if (n == 0) return;
    for (Index left = n / inner(); left > 0; --left) {
      f(base);
      for (int a = rank - 2; a >= 0; --a) {
        base += stride[at(a)];
        if (++i[at(a)] < shape[at(a)]) break;
        base -= stride[at(a)] * shape[at(a)];
        i[at(a)] = 0;
      }
    }
  }
};

// Elements of x as cells want them.
class Loader {
 public:
  Loader(const Cells& cells, DType d) : f64_(cells.floats ? load_f64(d) : nullptr), i64_(load_i64(d)) {}
  void operator()(const char* src, Index stride, Index n, void* dst) const {
    if (f64_)
      f64_(src, stride, n, static_cast<double*>(dst));
    else
      i64_(src, stride, n, static_cast<std::int64_t*>(dst));
  }

 private:
  LoadF64 f64_;
  LoadI64 i64_;
};

// Rows of at most a block, as many at a time as a block holds.
void walk_rows(const Cells& cells, const Tensor& x, const Axes& kept, Index run, Index step, std::byte* out) {
  const Loader load(cells, x.dtype);
  const Exact exact(x.dtype, step, run);
  const Index most = kBlock / run;
  const bool adjacent = kept.inner_step() == run * step;
  alignas(kWord) std::byte buffer[kBlock * kWord];
  kept.each_run(x.data, [&](const char* from) {
    for (Index k = 0; k < kept.inner(); k += most) {
      const Index count = std::min(most, kept.inner() - k);
      bool easy = cells.screened;
      if (adjacent) {
        load(from, step, count * run, buffer);
        if (easy) easy = exact(from, count * run);
      } else {
        for (Index r = 0; r < count; ++r) {
          const char* row = from + r * kept.inner_step();
          load(row, step, run, buffer + r * run * kWord);
          if (easy) easy = exact(row, run);
        }
      }
      from += count * kept.inner_step();
      cells.rows(buffer, run, count, easy, out);
      out += count * kWord;
    }
  });
}

// Two orders: along the reduced run with one accumulator, or, when a kept axis is the one contiguous in memory, with a
// block of accumulators side by side.
void walk(const Cells& cells, const Tensor& x, const Axes& kept, const Axes& reduced, bool along, std::byte* out) {
  const Loader load(cells, x.dtype);
  const Index size = reduced.size();
  constexpr Index kRoom = 4 * kBlock;  // calls through pointers want much to do
  struct {
    State state;
    alignas(kWord) std::byte buffer[kRoom * kWord];
  } room;
  State& state = room.state;
  std::byte* const buffer = room.buffer;
  if (along) {
    const Index run = reduced.inner(), step = reduced.inner_step();
    if (reduced.rank == 1 && run <= kBlock && run > 0) return walk_rows(cells, x, kept, run, step, out);
    // short runs are put together, each from the first lane on
    const Index pitch = cells.lanes ? (run + kLanes - 1) / kLanes * kLanes : run;
    if (pitch != run && pitch <= kRoom)
      for (Index i = 0; i < std::min(kRoom, size / run * pitch); ++i)
        std::memcpy(buffer + i * kWord, &cells.neutral, kWord);
    kept.each_run(x.data, [&](const char* row) {
      for (Index k = 0; k < kept.inner(); ++k, row += kept.inner_step()) {
        cells.start(state);
        Index filled = 0;
        reduced.each_run(row, [&](const char* p) {
          if (filled + pitch > kRoom) {
            cells.add(state, buffer, filled);
            filled = 0;
          }
          if (pitch <= kRoom) {
            load(p, step, run, buffer + filled * kWord);
            filled += pitch;
          } else {
            for (Index i = 0; i < run; i += kRoom) {
              const Index n = std::min(kRoom, run - i);
              load(p + i * step, step, n, buffer);
              cells.add(state, buffer, n);
            }
          }
        });
        if (filled) cells.add(state, buffer, filled);
        cells.result(state, size, out);
        out += kWord;
      }
    });
  } else {
    const Index run = kept.inner(), step = kept.inner_step();
    kept.each_run(x.data, [&](const char* row) {
      for (Index k = 0; k < run; k += kBlock) {
        const Index n = std::min(kBlock, run - k);
        cells.reset(state, n);
        const Index most = kBlock / n;  // rows of x that a buffer takes
        const bool adjacent = reduced.inner_step() == n * step;
        reduced.each_run(row + k * step, [&](const char* p) {
          for (Index i = 0; i < reduced.inner(); i += most) {
            const Index count = std::min(most, reduced.inner() - i);
            if (adjacent)
              load(p, step, n * count, buffer);
            else
              for (Index r = 0; r < count; ++r) load(p + r * reduced.inner_step(), step, n, buffer + r * n * kWord);
            p += count * reduced.inner_step();
            cells.add_rows(state, buffer, n, count);
          }
        });
        cells.results(state, out, n, size);
        out += n * kWord;
      }
    });
  }
}

struct Plan {
  Axes kept, reduced;
  bool along;  // the reduced axes hold the smallest step
};

Plan plan(const Tensor& x, std::uint32_t axes) {
  Plan p{};
  Index best = std::numeric_limits<Index>::max();
  p.along = true;
  for (int i = 0; i < x.rank; ++i) {
    const bool r = (axes >> i) & 1u;
    (r ? p.reduced : p.kept).add(x.dim(i), x.step(i));
  }
  const Index rs = p.reduced.rank ? std::abs(p.reduced.inner_step()) : best;
  const Index ks = p.kept.rank ? std::abs(p.kept.inner_step()) : best;
  p.along = rs <= ks || p.kept.inner() < 4;
  return p;
}

void reduce_float(Reduction op, const Tensor& x, std::uint32_t axes, const Tensor& out) {
  const Plan p = plan(x, axes);
  std::vector<double> y(at(p.kept.size()));
  const bool narrow = is_float(x.dtype) && x.dtype != DType::f64;
  walk(float_cells(op, narrow), x, p.kept, p.reduced, p.along, reinterpret_cast<std::byte*>(y.data()));
  if (op == Reduction::mean && p.reduced.size() == 0)
    std::fill(y.begin(), y.end(), std::numeric_limits<double>::quiet_NaN());
  store_f64(out.dtype)(y.data(), out.data, out.bytes(), static_cast<Index>(y.size()));
}

void reduce_int(Reduction op, const Tensor& x, std::uint32_t axes, const Tensor& out) {
  const Plan p = plan(x, axes);
  std::vector<std::int64_t> y(at(p.kept.size()));
  walk(int_cells(op, x.dtype == DType::u64), x, p.kept, p.reduced, p.along, reinterpret_cast<std::byte*>(y.data()));
  store_i64(out.dtype)(y.data(), out.data, out.bytes(), static_cast<Index>(y.size()));
}

void reduce(Reduction op, const Tensor& x, std::uint32_t axes, const Tensor& out) {
  if (is_float(out.dtype))
    reduce_float(op, x, axes, out);
  else
    reduce_int(op, x, axes, out);
}

// One line of a running sum; hi + lo carries the rounding errors.
void scan_line(bool product, bool exclusive, Index n, const double* x, double* y, Index step) {
  double hi = product ? 1 : 0, lo = 0;
  for (Index i = 0; i < n; ++i, x += step, y += step) {
    const double before = std::isfinite(hi) ? hi + lo : hi;
    if (product) {
      const double p = hi * *x;
      lo = std::fma(hi, *x, -p) + lo * *x;
      hi = p;
    } else {
      const double t = hi + *x, z = t - hi;
      lo += (hi - (t - z)) + (*x - z);
      hi = t;
    }
    *y = exclusive ? before : std::isfinite(hi) ? hi + lo : hi;
  }
}

void scan_line(bool product, bool exclusive, Index n, const std::int64_t* x, std::int64_t* y, Index step) {
  std::uint64_t s = product ? 1 : 0;
  for (Index i = 0; i < n; ++i, x += step, y += step) {
    const std::uint64_t before = s, v = static_cast<std::uint64_t>(*x);
    s = product ? s * v : s + v;
    *y = static_cast<std::int64_t>(exclusive ? before : s);
  }
}

template <class T>
void scan(bool product, const Tensor& x, int axis, bool exclusive, bool reverse, const Tensor& out) {
  const Index total = x.size();
  if (total == 0) return;
  std::vector<T> a(at(total)), b(at(total));
  Reader(x).next(a.data(), total);
  Index inner = 1;
  for (int i = axis + 1; i < x.rank; ++i) inner *= x.dim(i);
  const Index n = x.dim(axis), outer = total / (n * inner);
  for (Index o = 0; o < outer; ++o)
    for (Index i = 0; i < inner; ++i) {
      const Index from = o * n * inner + i + (reverse ? (n - 1) * inner : 0);
      scan_line(product, exclusive, n, a.data() + from, b.data() + from, reverse ? -inner : inner);
    }
  Writer(out).next(b.data(), total);
}

void cumulate(bool product, const Tensor& x, int axis, bool exclusive, bool reverse, const Tensor& out) {
  if (is_float(out.dtype))
    scan<double>(product, x, axis, exclusive, reverse, out);
  else
    scan<std::int64_t>(product, x, axis, exclusive, reverse, out);
}

}  // namespace

OPCONFORM_TABLE const ReduceTable opconform_reduce{sizeof(ReduceTable), reduce, cumulate};

}  // namespace opconform
