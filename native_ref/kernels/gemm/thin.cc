// Products that pack nothing: a few rows, or a single column.
#include <algorithm>
#include <vector>

#include "native_ref/kernels/gemm/gemm.h"
#include "native_ref/kernels/gemm/tile.h"

namespace opconform::gemm {
namespace {

// Up to four rows, the rows of b contiguous: b is read once, in place, nothing is packed.  The order of sums is that of
// ``multiply``; squares (with Squared) receives the sum of squares of each column of b.
template <int R, class T, bool Squared>
void multiply_rows(Index n, Index k, const Matrix<T>& a, const Matrix<T>& b, double* c, Index ldc, double* squares) {
  constexpr int L = kLanes<double>;
  using V = Vec<double>;
  Index j = 0;
  const auto columns = [&]<int NV>() {
    V total[R][NV] = {}, square[NV] = {};
    for (Index pc = 0; pc < k; pc += kDepth) {
      const Index end = std::min(k, pc + kDepth);
      V acc[R][NV] = {};
      for (Index q = pc; q < end; ++q) {
        const T* p = b.data + q * b.row_stride + j;
        V bv[NV];
        for (int v = 0; v < NV; ++v) {
          bv[v] = load_as<double>(p + v * L);
          if constexpr (Squared) square[v] = multiply_add<double>(bv[v], bv[v], square[v]);
        }
        for (int r = 0; r < R; ++r) {
          const V av = static_cast<double>(a.at(r, q)) - V{};
          for (int v = 0; v < NV; ++v) acc[r][v] = multiply_add<double>(av, bv[v], acc[r][v]);
        }
      }
      for (int r = 0; r < R; ++r)
        for (int v = 0; v < NV; ++v) total[r][v] = pc == 0 ? acc[r][v] : total[r][v] + acc[r][v];
    }
    for (int v = 0; v < NV; ++v) {
      for (int r = 0; r < R; ++r) store(c + r * ldc + j + v * L, total[r][v]);
      if constexpr (Squared) store(squares + j + v * L, square[v]);
    }
    j += NV * L;
  };
  constexpr int kMost = R == 4 || (R == 2 && Squared) ? 2 : 4;  // sums that do not wait for one another
  while (j + kMost * L <= n) columns.template operator()<kMost>();
  while (j + L <= n) columns.template operator()<1>();
  for (; j < n; ++j)
    for (int r = 0; r < R; ++r) {
      double total = 0, square = 0;
      for (Index pc = 0; pc < k; pc += kDepth) {
        double acc = 0;
        for (Index q = pc; q < std::min(k, pc + kDepth); ++q) {
          const double y = static_cast<double>(b.data[q * b.row_stride + j]);
          acc = multiply_add(static_cast<double>(a.at(r, q)), y, acc);
          if constexpr (Squared) square += y * y;
        }
        total = pc == 0 ? acc : total + acc;
      }
      c[r * ldc + j] = total;
      if constexpr (Squared) squares[j] = square;
    }
}

// A row of a with a column and with itself: sums of products and of squares in eight fixed lanes, and of what is left.
struct Dots {
  double products[8], squares[8], rest, rest_squared;
};
inline void dots(Index k, const float* p, const double* x, Dots& d) {
  constexpr int L = kLanes<double>, N = 16 / L, H = N / 2;
  Vec<double> a[N] = {}, b[N] = {};
  Index q = 0;
  for (; q + 16 <= k; q += 16)
    for (int h = 0; h < N; ++h) {
      const Vec<double> v = load_as<double>(p + q + h * L);
      a[h] += v * load(x + q + h * L);
      b[h] += v * v;
    }
  for (int h = 0; h < H; ++h) {
    store(d.products + h * L, a[h] + a[h + H]);
    store(d.squares + h * L, b[h] + b[h + H]);
  }
  d.rest = d.rest_squared = 0;
  for (; q < k; ++q) {
    const double v = static_cast<double>(p[q]);
    d.rest += v * x[q];
    d.rest_squared += v * v;
  }
}

}  // namespace

template <bool Squared, class T>
void multiply_thin(Index m, Index n, Index k, const Matrix<T>& a, const Matrix<T>& b, double* c, Index ldc,
                   double* squares) {
  for (Index i = 0; i < m;) {
    const Matrix<T> part{a.data + i * a.row_stride, a.row_stride, a.col_stride};
    const Index left = m - i;
    if (left >= 4) multiply_rows<4, T, Squared>(n, k, part, b, c + i * ldc, ldc, squares), i += 4;
    else if (left >= 2) multiply_rows<2, T, Squared>(n, k, part, b, c + i * ldc, ldc, squares), i += 2;
    else multiply_rows<1, T, Squared>(n, k, part, b, c + i * ldc, ldc, squares), i += 1;
  }
}

void multiply_vector(Index m, Index k, const Matrix<float>& a, const double* x, double* c) {
  double norm = 0;
  for (Index q = 0; q < k; ++q) norm += x[q] * x[q];
  std::vector<double> row;
  constexpr Index kSome = 8;  // rows at a time, so that their lanes are added up side by side
  for (Index i = 0; i < m; i += kSome) {
    const Index some = std::min(kSome, m - i);
    Dots d[kSome] = {};
    double sum[kSome], squares[kSome];
    for (Index r = 0; r < some; ++r) dots(k, a.data + (i + r) * a.row_stride, x, d[r]);
    for (Index r = 0; r < kSome; ++r) sum[r] = d[r].rest, squares[r] = d[r].rest_squared;
    for (int l = 0; l < 8; ++l)
      for (Index r = 0; r < kSome; ++r) sum[r] += d[r].products[l], squares[r] += d[r].squares[l];
    for (Index r = 0; r < some; ++r) {
      if (sum[r] * sum[r] < squares[r] * norm * 0x1p-40) {
        const float* p = a.data + (i + r) * a.row_stride;
        row.assign(p, p + k);
        sum[r] = dot2(k, row.data(), x);
      }
      c[i + r] = sum[r];
    }
  }
}

template void multiply_thin<true>(Index, Index, Index, const Matrix<float>&, const Matrix<float>&, double*, Index,
                                  double*);
template void multiply_thin<false>(Index, Index, Index, const Matrix<double>&, const Matrix<double>&, double*, Index,
                                   double*);

}  // namespace opconform::gemm
