#include "native_ref/kernels/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"

namespace opconform {
namespace {

struct Range {  // the taps of one window on one axis that meet x, and how many meet x or its declared padding
  Index first, count, start, padded;  // first tap, taps, position of the first tap
};

std::vector<Range> ranges(Index out, Index in, Index kernel, Index stride, Index dilation, Index begin, Index end) {
  std::vector<Range> r(static_cast<std::size_t>(out));
  for (Index o = 0; o < out; ++o) {
    Range& w = r[static_cast<std::size_t>(o)];
    const Index at = o * stride - begin;
    w = {0, 0, 0, 0};
    for (Index k = 0; k < kernel; ++k) {
      const Index i = at + k * dilation;
      if (i >= -begin && i < in + end) ++w.padded;
      if (i < 0 || i >= in) continue;
      if (w.count++ == 0) {
        w.first = k;
        w.start = i;
      }
    }
  }
  return r;
}

struct Largest {
  double best = -std::numeric_limits<double>::infinity();
  Index at = -1;
  void add(double v, Index i) {
    if (v > best || at < 0 || (v != v && best == best)) {
      best = v;
      at = i;
    }
  }
};

// One plane of x under a window.
struct Plane {
  const std::array<std::vector<Range>, 3>& ranges;
  const std::array<Index, 3>& in;
  const PoolWindow& v;
  const double* data;

  // f(first output, rows) for every line of outputs; rows(g) calls g(row) for each row of x that its windows see.
  template <class F>
  void each_line(F&& f) const {
    Index line = 0;
    for (const Range& z : ranges[0])
      for (const Range& h : ranges[1]) {
        f(line, [&](auto&& g) {
          for (Index a = 0; a < z.count; ++a)
            for (Index b = 0; b < h.count; ++b)
              g(data + ((z.start + a * v.dilation[0]) * in[1] + h.start + b * v.dilation[1]) * in[2]);
        });
        line += static_cast<Index>(ranges[2].size());
      }
  }
  // tap(output, n, from, step) for every column of the window: output + i sees from[i * step], i < n, where that lies in x.
  template <class Tap>
  void each_column(Index line, const double* row, Tap&& tap) const {
    for (Index k = 0; k < v.kernel[2]; ++k) {
      // outputs o with 0 <= o * stride - begin + k * dilation < in
      const Index at = k * v.dilation[2] - v.begin[2], s = v.stride[2];
      const Index low = at >= 0 ? 0 : (-at + s - 1) / s;
      const Index high = std::min(static_cast<Index>(ranges[2].size()), in[2] > at ? (in[2] - at + s - 1) / s : 0);
      if (low < high) tap(line + low, high - low, row + low * s + at, s);
    }
  }
};

// Largest and sums without positions, over whole rows: the rows of a window are folded into one row of x's width first,
// then `tap` takes from it what each column of the window sees, so that both inner loops run along rows.
template <class Fold, class Tap>
void by_rows(const Plane& plane, std::vector<double>& folded, Fold&& fold, Tap&& tap) {
  const Index width = plane.in[2];
  folded.resize(static_cast<std::size_t>(width));
  plane.each_line([&](Index line, auto&& rows) {
    const double* from = nullptr;
    rows([&](const double* row) {
      if (from == nullptr) {
        from = row;  // a single row is used where it lies
        return;
      }
      if (from != folded.data()) std::copy_n(from, width, folded.data());
      from = folded.data();
      fold(folded.data(), row, width);
    });
    if (from != nullptr) plane.each_column(line, from, tap);
  });
}

// Sums with their rounding errors, tap by tap.
template <class Tap>
void by_taps(const Plane& plane, Tap&& tap) {
  plane.each_line([&](Index line, auto&& rows) {
    rows([&](const double* row) { plane.each_column(line, row, tap); });
  });
}

// c[i] = f(c[i], e[i * step]) with the usual steps spelt out, which compilers then read in vectors.
template <class F>
void with_step(double* c, const double* e, Index n, Index step, F&& f) {
  if (step == 1)
    for (Index i = 0; i < n; ++i) c[i] = f(c[i], e[i]);
  else if (step == 2)
    for (Index i = 0; i < n; ++i) c[i] = f(c[i], e[2 * i]);
  else
    for (Index i = 0; i < n; ++i) c[i] = f(c[i], e[i * step]);
}

void pool(Pooling kind, const Tensor& x, const PoolWindow& v, const Tensor& y, const Tensor* positions) {
  const int spatial = x.rank - 2;
  std::array<Index, 3> in{1, 1, 1}, out{1, 1, 1};
  for (int i = 0; i < spatial; ++i) {
    in[static_cast<std::size_t>(3 - spatial + i)] = x.dim(2 + i);
    out[static_cast<std::size_t>(3 - spatial + i)] = y.dim(2 + i);
  }
  std::array<std::vector<Range>, 3> r;
  for (std::size_t a = 0; a < 3; ++a)
    r[a] = ranges(out[a], in[a], v.kernel[a], v.stride[a], v.dilation[a], v.begin[a], v.end[a]);
  const Index inputs = in[0] * in[1] * in[2], outputs = out[0] * out[1] * out[2];
  std::vector<double> plane(static_cast<std::size_t>(inputs)), result(static_cast<std::size_t>(outputs)), lost, folded;
  const StoreF64 store = store_f64(y.dtype);
  const Plane image{r, in, v, plane.data()};
  Reader reader(x);
  char* to = y.data;
  std::int64_t* where = positions ? reinterpret_cast<std::int64_t*>(positions->data) : nullptr;
  for (Index nc = x.dim(0) * x.dim(1); nc > 0; --nc) {
    reader.next(plane.data(), inputs);
    if (!where && kind != Pooling::lp) {
      const bool largest = kind == Pooling::max;
      std::fill(result.begin(), result.end(), largest ? -std::numeric_limits<double>::infinity() : 0.0);
      double* cells = result.data();
      if (largest) {
        const auto larger = [](double c, double e) { return ((e > c) | (e != e)) ? e : c; };
        by_rows(
            image, folded,
            [&](double* c, const double* e, Index n) {
              for (Index i = 0; i < n; ++i) c[i] = larger(c[i], e[i]);
            },
            [&](Index o, Index n, const double* from, Index step) { with_step(cells + o, from, n, step, larger); });
      } else {
        // a few narrow elements add up exactly, or nearly, in f64; many of them, or f64 ones, take their errors along
        const bool careful = x.dtype == DType::f64 || v.kernel[0] * v.kernel[1] * v.kernel[2] > 64;
        if (!careful) {
          by_rows(
              image, folded,
              [](double* c, const double* e, Index n) {
                for (Index i = 0; i < n; ++i) c[i] += e[i];
              },
              [&](Index o, Index n, const double* from, Index step) {
                with_step(cells + o, from, n, step, [](double c, double e) { return c + e; });
              });
        } else {
          lost.assign(static_cast<std::size_t>(outputs), 0.0);
          by_taps(image, [&](Index o, Index n, const double* from, Index step) {
            double *c = cells + o, *l = lost.data() + o;
            for (Index i = 0; i < n; ++i) {
              const double e = from[i * step], u = c[i] + e, q = u - c[i];
              l[i] += (c[i] - (u - q)) + (e - q);
              c[i] = u;
            }
          });
          for (Index i = 0; i < outputs; ++i)
            if (std::isfinite(cells[i])) cells[i] += lost[static_cast<std::size_t>(i)];
        }
        Index o = 0;
        for (const Range& z : r[0])
          for (const Range& h : r[1])
            for (const Range& w : r[2]) {
              const Index n = kind == Pooling::average ? z.count * h.count * w.count : z.padded * h.padded * w.padded;
              cells[o++] /= static_cast<double>(n);
            }
      }
      store(cells, to, y.bytes(), outputs);
      to += outputs * y.bytes();
      continue;
    }
    double* o = result.data();
    for (const Range& z : r[0])
      for (const Range& h : r[1])
        for (const Range& w : r[2]) {
          const double* first = plane.data() + (z.start * in[1] + h.start) * in[2] + w.start;
          const Index dz = v.dilation[0] * in[1] * in[2], dh = v.dilation[1] * in[2], dw = v.dilation[2];
          const auto each = [&](auto&& f) {
            for (Index a = 0; a < z.count; ++a)
              for (Index b = 0; b < h.count; ++b) {
                const double* p = first + a * dz + b * dh;
                for (Index c = 0; c < w.count; ++c) f(p[c * dw], p + c * dw);
              }
          };
          if (where) {
            Largest m;
            each([&](double e, const double* p) { m.add(e, p - plane.data()); });
            *o++ = m.best;
            *where++ = m.at;
          } else {
            double s = 0, missed = 0;
            const double power = v.p;
            each([&](double e, const double*) {
              const double t = power == 1 ? std::abs(e) : power == 2 ? e * e : std::pow(std::abs(e), power);
              const double u = s + t, q = u - s;
              missed += (s - (u - q)) + (t - q);
              s = u;
            });
            s = std::isfinite(s) ? s + missed : s;
            *o++ = power == 1 ? s : power == 2 ? std::sqrt(s) : std::pow(s, 1 / power);
          }
        }
    store(result.data(), to, y.bytes(), outputs);
    to += outputs * y.bytes();
  }
}

}  // namespace

OPCONFORM_TABLE const PoolTable opconform_pool{sizeof(PoolTable), pool};

}  // namespace opconform
