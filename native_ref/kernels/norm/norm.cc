#include "native_ref/kernels/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"
#include "native_ref/kernels/norm/exponential.h"

namespace opconform {
namespace {

constexpr Index kWide = 16;

// exp(x - m), where the rounding error of x - m counts (f64 input: it is worth |x - m| units of the result).
inline double shifted(double x, double m) {
  const double d = x - m, b = d - x;
  const double lost = (x - (d - b)) + (-m - b);
  const double e = exponential(d);
  return e + e * (lost - lost == 0 ? lost : 0);
}

inline double larger(double a, double b) { return a != a || a > b ? a : b; }

// One line of n elements, in place.  Sixteen partial sums in fixed places, so bits do not depend on the machine.
void line(double* x, Index n, bool log, bool careful) {
  double top[kWide], sum[kWide];
  for (Index l = 0; l < kWide; ++l) top[l] = -std::numeric_limits<double>::infinity(), sum[l] = 0;
  Index i = 0;
  for (; i + kWide <= n; i += kWide)
    for (Index l = 0; l < kWide; ++l) top[l] = larger(top[l], x[i + l]);
  for (Index l = 0; i + l < n; ++l) top[l] = larger(top[l], x[i + l]);
  double m = top[0];
  for (Index l = 1; l < kWide; ++l) m = larger(m, top[l]);
  std::vector<double> spare;
  double* e = x;
  if (log) {
    spare.resize(static_cast<std::size_t>(n));
    e = spare.data();
  }
  if (careful)
    for (i = 0; i < n; ++i) e[i] = shifted(x[i], m);
  else
    for (i = 0; i < n; ++i) e[i] = exponential(x[i] - m);
  for (i = 0; i + kWide <= n; i += kWide)
    for (Index l = 0; l < kWide; ++l) sum[l] += e[i + l];
  for (Index l = 0; i + l < n; ++l) sum[l] += e[i + l];
  double s = 0;
  for (Index l = 0; l < kWide; ++l) s += sum[l];
  if (log) {
    const double t = std::log(s);
    for (i = 0; i < n; ++i) x[i] = (x[i] - m) - t;
  } else {
    for (i = 0; i < n; ++i) x[i] /= s;
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
  const StoreF64 store = store_f64(y.dtype);
  const bool careful = x.dtype == DType::f64;
  Reader reader(x);
  std::vector<double> block(static_cast<std::size_t>(n * width)), work;
  char* to = y.data;
  for (Index left = total / (n * width); left > 0; --left) {
    reader.next(block.data(), n * width);
    if (width == 1)
      line(block.data(), n, log, careful);
    else
      columns(block.data(), n, width, log, careful, work);
    store(block.data(), to, y.bytes(), n * width);
    to += n * width * y.bytes();
  }
}

}  // namespace

OPCONFORM_TABLE const NormTable opconform_norm{sizeof(NormTable), softmax};

}  // namespace opconform
