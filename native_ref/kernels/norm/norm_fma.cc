// Compiled with contraction: the polynomial gains a third, and everything is rounded again (f64 within its own bound).
#include "native_ref/kernels/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"
#include "native_ref/kernels/gemm/scratch.h"
#include "native_ref/kernels/norm/exponential.h"

namespace opconform {
namespace {

// exp(x - m), where the rounding error of x - m counts (f64 input: it is worth |x - m| units of the result).
inline double shifted(double x, double m) {
  const double d = x - m, b = d - x;
  const double lost = (x - (d - b)) + (-m - b);
  const double e = exponential(d);
  return e + e * (lost - lost == 0 ? lost : 0);
}

inline double larger(double a, double b) { return a != a || a > b ? a : b; }

using V8 = Eight<double>;

template <class V>
V larger(V a, V b) {
  return each([](auto u, auto v) { return choose((u != u) | (u > v), u, v); }, a, b);
}

V8 read_some(const double* p, Index n, double rest) {
  double v[8];
  write(v, all<V8>(rest));
  std::memcpy(v, p, static_cast<std::size_t>(n) * sizeof(double));
  return read<V8>(v);
}

double careful_largest(const double* x, Index n) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  V8 top = all<V8>(none);
  Index i = 0;
  for (; i + 8 <= n; i += 8) top = larger(top, read<V8>(x + i));
  if (i < n) top = larger(top, read_some(x + i, n - i, none));
  return fold_all<double>(top, [](auto a, auto b) { return larger(a, b); });
}

double largest(const double* x, Index n) {
  V8 a = all<V8>(-std::numeric_limits<double>::infinity()), b = a, sums = {};
  Index i = 0;
  for (; i + 16 <= n; i += 16) {
    const V8 u = read<V8>(x + i), v = read<V8>(x + i + 8);
    a = Greater{}(a, u);
    b = Greater{}(b, v);
    sums += u + v;
  }
  double top = fold_all<double>(Greater{}(a, b), Greater{}), sum = fold_all<double>(sums, Plus{});
  for (; i < n; ++i) {
    top = top > x[i] ? top : x[i];
    sum += x[i];
  }
  return sum == sum ? top : careful_largest(x, n);  // a NaN, or infinities of both signs
}

// As much of a line as is left in whole W from element i on; returns where it ends.
template <class W>
Index whole_exponentials(const double* x, Index i, Index n, double m, double* e, V8& sums) {
  constexpr Index L = sizeof(W) / sizeof(double);
  const W by = all<W>(m);
  V8 s = sums;
  for (; i + L <= n; i += L) {
    const W v = exponential(read<W>(x + i) - by);
    write(e + i, v);
    if constexpr (L == 16)
      s += v.a, s += v.b;
    else
      s += v;
  }
  sums = s;
  return i;
}

// e <- exp(x - m); returns the sum, in eight partial sums in fixed places, so bits do not depend on the machine.
double exponentials(const double* x, Index n, double m, double* e) {
  V8 sums{};
  double s = 0, part[8];
  Index i = 0;
  if constexpr (kVectorBytes == 32) i = whole_exponentials<Halves<V8>>(x, i, n, m, e, sums);
  i = whole_exponentials<V8>(x, i, n, m, e, sums);
  if (i < n) {
    write(part, exponential(read_some(x + i, n - i, m) - all<V8>(m)));
    std::memcpy(e + i, part, static_cast<std::size_t>(n - i) * sizeof(double));
    for (int l = 0; l < n - i; ++l) s += part[l];
  }
  write(part, sums);
  for (int l = 0; l < 8; ++l) s += part[l];
  return s;
}
double careful_exponentials(const double* x, Index n, double m, double* e) {
  double s = 0;
  for (Index i = 0; i < n; ++i) s += e[i] = shifted(x[i], m);
  return s;
}

constexpr Index kLines = 32, kTogether = 1024;  // lines at a time, and elements of them

// `count` lines of n elements, in place, step by step, so that one line's sum does not wait for another's.
void lines(double* x, Index n, Index count, bool log, bool careful, std::vector<double>& spare) {
  const auto exps = careful ? careful_exponentials : exponentials;
  double top[kLines], sum[kLines];
  if (log) spare.resize(static_cast<std::size_t>(n));
  for (Index c = 0; c < count; ++c) top[c] = largest(x + c * n, n);
  for (Index c = 0; c < count; ++c) sum[c] = exps(x + c * n, n, top[c], log ? spare.data() : x + c * n);
  for (Index c = 0; c < count; ++c) {
    double* p = x + c * n;
    const double m = top[c], s = sum[c];
    if (log) {
      const double t = std::log(s);
      for (Index i = 0; i < n; ++i) p[i] = (p[i] - m) - t;
    } else if (careful) {
      for (Index i = 0; i < n; ++i) p[i] /= s;
    } else {
      const double r = 1 / s;
      for (Index i = 0; i < n; ++i) p[i] *= r;
    }
  }
}

// n elements of each of `width` columns, rows `width` apart.
void columns(double* x, Index n, Index width, bool log, bool careful, std::vector<double>& work) {
  work.assign(static_cast<std::size_t>(2 * width), 0);
  double *top = work.data(), *sum = top + width;
  std::fill_n(top, width, -std::numeric_limits<double>::infinity());
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < width; ++c) top[c] = larger(top[c], x[i * width + c]);
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < width; ++c) {
      double& v = x[i * width + c];
      const double d = v - top[c], e = careful ? shifted(v, top[c]) : exponential(d);
      sum[c] += e;
      v = log ? d : e;
    }
  if (log)
    for (Index c = 0; c < width; ++c) sum[c] = std::log(sum[c]);
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < width; ++c) x[i * width + c] = log ? x[i * width + c] - sum[c] : x[i * width + c] / sum[c];
}

void softmax(const Tensor& x, int axis, bool log, const Tensor& y) {
  const Index total = x.size();
  if (total == 0) return;
  const Index n = x.dim(axis);
  Index width = 1;
  for (int i = axis + 1; i < x.rank; ++i) width *= x.dim(i);
  const StoreF64 save = store_f64(y.dtype);
  const bool careful = x.dtype == DType::f64;
  Reader reader(x);
  // columns of one index of the axes before, or some lines
  const Index most = width > 1 ? 1 : std::clamp<Index>(kTogether / n, 1, kLines);
  thread_local gemm::Scratch<double> scratch;
  double* block = scratch.get(most * n * width);
  std::vector<double> work;
  char* to = y.data;
  for (Index left = total / (n * width); left > 0;) {
    const Index count = std::min(left, most), size = count * n * width;
    reader.next(block, size);
    if (width == 1)
      lines(block, n, count, log, careful, work);
    else
      columns(block, n, width, log, careful, work);
    save(block, to, y.bytes(), size);
    to += size * y.bytes();
    left -= count;
  }
}

}  // namespace

OPCONFORM_TABLE const NormTable opconform_norm{sizeof(NormTable), softmax};

}  // namespace opconform
