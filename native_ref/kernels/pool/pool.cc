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
  std::vector<double> plane(static_cast<std::size_t>(inputs)), result(static_cast<std::size_t>(outputs));
  const StoreF64 store = store_f64(y.dtype);
  Reader reader(x);
  char* to = y.data;
  std::int64_t* where = positions ? reinterpret_cast<std::int64_t*>(positions->data) : nullptr;
  for (Index nc = x.dim(0) * x.dim(1); nc > 0; --nc) {
    reader.next(plane.data(), inputs);
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
          const Index count = z.count * h.count * w.count;
          if (kind == Pooling::max && where) {
            Largest m;
            each([&](double e, const double* p) { m.add(e, p - plane.data()); });
            *o++ = m.best;
            *where++ = m.at;
          } else if (kind == Pooling::max) {
            double m = -std::numeric_limits<double>::infinity();
            each([&](double e, const double*) { m = e > m || e != e ? e : m; });
            // once NaN, "e > m" is never true again
            *o++ = m;
          } else if (kind == Pooling::lp) {
            double s = 0, lost = 0;
            const double power = v.p;
            each([&](double e, const double*) {
              const double t = power == 1 ? std::abs(e) : power == 2 ? e * e : std::pow(std::abs(e), power);
              const double u = s + t, q = u - s;
              lost += (s - (u - q)) + (t - q);
              s = u;
            });
            s = std::isfinite(s) ? s + lost : s;
            *o++ = power == 1 ? s : power == 2 ? std::sqrt(s) : std::pow(s, 1 / power);
          } else {
            double s = 0, lost = 0;
            each([&](double e, const double*) {
              const double u = s + e, q = u - s;
              lost += (s - (u - q)) + (e - q);
              s = u;
            });
            s = std::isfinite(s) ? s + lost : s;
            *o++ = s / static_cast<double>(kind == Pooling::average ? count : z.padded * h.padded * w.padded);
          }
        }
    store(result.data(), to, y.bytes(), outputs);
    to += outputs * y.bytes();
  }
}

}  // namespace

OPCONFORM_TABLE const PoolTable opconform_pool{sizeof(PoolTable), pool};

}  // namespace opconform
