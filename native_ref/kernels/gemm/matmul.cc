#include "native_ref/kernels/gemm/matmul.h"

#include "native_ref/core/table.h"
#include "native_ref/kernels/gemm/gemm.h"
#include "native_ref/kernels/gemm/operand.h"
#include "native_ref/kernels/gemm/result.h"

namespace opconform {
namespace {

using namespace gemm;

template <class T, class C>
void batches(const Tensor& a, const Tensor& b, const Tensor& y, Product<T, C> product) {
  const Operand<T> oa(a), ob(b);
  const int r = a.rank;
  const Index m = a.dim(r - 2), k = a.dim(r - 1), n = b.dim(r - 1);
  Index count = 1;
  for (int i = 0; i < r - 2; ++i) count *= y.dim(i);
  Result<C> result(y, m * n);
  // a product with few columns is computed transposed, so that vectors are filled by rows; same order of sums
  const bool flip = n < 8 && m > n;
  std::vector<C> flipped(flip ? static_cast<std::size_t>(m * n) : 0);
  std::array<Index, kMaxRank> at{};
  Index pa = 0, pb = 0;
  for (Index i = 0; i < count; ++i) {
    const Matrix<T> ma{oa.data() + pa, oa.step(r - 2), oa.step(r - 1)}, mb{ob.data() + pb, ob.step(r - 2),
        ob.step(r - 1)};
    C* cells = result.cells(i * m * n);
    bool done = false;
    if constexpr (std::is_same_v<T, float> && std::is_same_v<C, double>)
      if (n == 1 && k > 1 && ma.col_stride == 1) {
        std::vector<double> x(static_cast<std::size_t>(k));
        for (Index q = 0; q < k; ++q) x[static_cast<std::size_t>(q)] = static_cast<double>(mb.at(q, 0));
        multiply_vector(m, k, ma, x.data(), cells);
        done = true;
      }
    if (done) {
    } else if (flip) {
      const auto turned = [](const Matrix<T>& x) { return Matrix<T>{x.data, x.col_stride, x.row_stride}; };
      product(n, m, k, turned(mb), MatrixRows<T>(turned(ma)), flipped.data(), m);
      for (Index p = 0; p < m; ++p)
        for (Index q = 0; q < n; ++q) cells[p * n + q] = flipped[static_cast<std::size_t>(q * m + p)];
    } else {
      product(m, n, k, ma, MatrixRows<T>(mb), cells, n);
    }
    result.store(i * m * n, m * n);
    for (int d = r - 3; d >= 0; --d) {
      const auto u = static_cast<std::size_t>(d);
      pa += oa.step(d);
      pb += ob.step(d);
      if (++at[u] < y.dim(d)) break;
      pa -= oa.step(d) * y.dim(d);
      pb -= ob.step(d) * y.dim(d);
      at[u] = 0;
    }
  }
}

void matmul(const Tensor& a, const Tensor& b, const Tensor& y) {
  if (y.size() == 0) return;
  switch (way(a.dtype, b.dtype, a.dim(a.rank - 1))) {
    case Way::screened: return batches<float, double>(a, b, y, multiply_screened);
    case Way::dot2: return batches<double, double>(a, b, y, multiply_dot2);
    case Way::bytes: return batches<float, std::int64_t>(a, b, y, multiply_bytes);
    case Way::halves: return batches<double, double>(a, b, y, multiply_plain);
    case Way::integers: return batches<std::int64_t, std::int64_t>(a, b, y, multiply_integers);
  }
}

}  // namespace

OPCONFORM_TABLE const GemmTable opconform_gemm{sizeof(GemmTable), matmul};

}  // namespace opconform
