// Compiled with contraction: the polynomial gains a third, and everything is rounded again (f64 within its own bound).
#include "native_ref/kernels/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"
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

Eight load(const double* p) {
  Eight v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(double* p, Eight v) { std::memcpy(p, &v, sizeof v); }

Eight larger(Eight a, Eight b) {
  const EightBits m = (a != a) | (a > b);
  return reinterpret_cast<Eight>((m & reinterpret_cast<EightBits>(a)) | (~m & reinterpret_cast<EightBits>(b)));
}

// One line of n elements, in place.  Eight partial sums in fixed places, so bits do not depend on the machine.
void line(double* x, Index n, bool log, bool careful, std::vector<double>& spare) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  Eight tops = none - Eight{}, sums{};
  Index i = 0;
  for (; i + 8 <= n; i += 8) tops = larger(tops, load(x + i));
  double m = none, s = 0;
  for (; i < n; ++i) m = larger(m, x[i]);
  for (int l = 0; l < 8; ++l) m = larger(m, tops[l]);
  double* e = x;
  if (log) {
    spare.resize(static_cast<std::size_t>(n));
    e = spare.data();
  }
  i = 0;
  if (!careful)
    for (; i + 8 <= n; i += 8) {
      const Eight v = exponential(load(x + i) - m);
      store(e + i, v);
      sums += v;
    }
  for (; i < n; ++i) {
    e[i] = careful ? shifted(x[i], m) : exponential(x[i] - m);
    s += e[i];
  }
  for (int l = 0; l < 8; ++l) s += sums[l];
  if (log) {
    const double t = std::log(s);
    for (i = 0; i < n; ++i) x[i] = (x[i] - m) - t;
  } else if (careful) {
    for (i = 0; i < n; ++i) x[i] /= s;
  } else {
    const double r = 1 / s;
    for (i = 0; i < n; ++i) x[i] *= r;
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
  std::vector<double> block(static_cast<std::size_t>(n * width)), work;
  char* to = y.data;
  for (Index left = total / (n * width); left > 0; --left) {
    reader.next(block.data(), n * width);
    if (width == 1)
      line(block.data(), n, log, careful, work);
    else
      columns(block.data(), n, width, log, careful, work);
    save(block.data(), to, y.bytes(), n * width);
    to += n * width * y.bytes();
  }
}

}  // namespace

OPCONFORM_TABLE const NormTable opconform_norm{sizeof(NormTable), softmax};

}  // namespace opconform
