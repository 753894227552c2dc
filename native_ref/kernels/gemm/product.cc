// The part of matrix products that does not depend on where elements come from, compiled once.
#include "native_ref/kernels/gemm/gemm.h"

#include <vector>

namespace opconform::gemm {
namespace {

template <class Acc, int R, class F>
void with_vecs(int vecs, F&& f) {
  if (vecs == 1) return f.template operator()<R, 1>();
  if (vecs == 2) return f.template operator()<R, 2>();
  f.template operator()<R, Shape<Acc>::vecs>();
}
template <class Acc, class F>
void with_shape(Index rows, int vecs, F&& f) {
  if (rows <= 1) return with_vecs<Acc, 1>(vecs, f);
  if (rows <= 2) return with_vecs<Acc, 2>(vecs, f);
  if (rows <= 4) return with_vecs<Acc, 4>(vecs, f);
  with_vecs<Acc, Shape<Acc>::rows>(vecs, f);
}

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

template <class Acc, class Out>
void multiply_block(Index m, Index n, Index kc, const Acc* pa, Index lda, const Acc* pb, Out* c, Index ldc,
                    bool first) {
  constexpr int R = Shape<Acc>::rows, L = kLanes<Acc>, NV = Shape<Acc>::vecs, W = NV * L;
  alignas(64) Acc tile[R * W];
  for (Index i = 0; i < m; i += R)
    for (Index j = 0; j < n; j += W) {
      const Acc *ta = pa + i * lda, *tb = pb + j * kc;
      const Index rows = std::min<Index>(R, m - i), cols = std::min<Index>(W, n - j);
      const int vecs = static_cast<int>((cols + L - 1) / L);
      Out* o = c + i * ldc + j;
      if constexpr (std::is_same_v<Acc, Out>)
        if (rows == R && cols == vecs * L) {
          with_vecs<Acc, R>(vecs, [&]<int Rows, int N>() {
            first ? multiply_tile<Acc, Rows, N, false>(kc, ta, lda, tb, o, ldc)
                  : multiply_tile<Acc, Rows, N, true>(kc, ta, lda, tb, o, ldc);
          });
          continue;
        }
      with_shape<Acc>(rows, vecs, [&]<int Rows, int N>() {
        multiply_tile<Acc, Rows, N, false>(kc, ta, lda, tb, tile, vecs * L);
      });
      for (Index x = 0; x < rows; ++x) {
        Out* to = o + x * ldc;
        const Acc* t = tile + x * vecs * L;
        if (first)
          for (Index y = 0; y < cols; ++y) to[y] = static_cast<Out>(t[y]);
        else
          for (Index y = 0; y < cols; ++y) to[y] += static_cast<Out>(t[y]);
      }
    }
}

void dot2_block(Index m, Index cols, Index k, const double* pa, const double* pb, double* c, Index ldc) {
  constexpr int R = Dot2Shape::rows, NV = Dot2Shape::vecs, W = NV * kLanes<double>;
  alignas(64) double hi[R * W], lo[R * W];
  for (Index i = 0; i < m; i += R) {
    dot2_tile<R, NV>(k, pa + i * k, R, pb, hi, lo);
    for (Index x = 0; x < std::min<Index>(R, m - i); ++x)
      for (Index y = 0; y < cols; ++y) {
        double r = hi[x * W + y] + lo[x * W + y];
        if (!std::isfinite(r)) {  // an infinity or NaN somewhere: the plain sum says which
          r = 0;
          for (Index q = 0; q < k; ++q) r += pa[i * k + q * R + x] * pb[q * W + y];
        }
        c[(i + x) * ldc + y] = r;
      }
  }
}

double dot2(Index n, const double* x, const double* y) {
  constexpr int L = 8;  // fixed, so that bits do not depend on the vector length
  double s[L] = {}, c[L] = {};
  for (Index i = 0; i < n; ++i) {
    const int l = static_cast<int>(i % L);
    const double p = x[i] * y[i], e = std::fma(x[i], y[i], -p);
    const double t = s[l] + p, z = t - s[l];
    c[l] += ((s[l] - (t - z)) + (p - z)) + e;
    s[l] = t;
  }
  double hi = 0, lo = 0;
  for (int l = 0; l < L; ++l) {
    const double t = hi + s[l], z = t - hi;
    lo += ((hi - (t - z)) + (s[l] - z)) + c[l];
    hi = t;
  }
  return hi + lo;
}

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

template void multiply_block(Index, Index, Index, const double*, Index, const double*, double*, Index, bool);
template void multiply_block(Index, Index, Index, const float*, Index, const float*, std::int64_t*, Index, bool);
template void multiply_block(Index, Index, Index, const std::uint64_t*, Index, const std::uint64_t*, std::uint64_t*,
                             Index, bool);
template void multiply_thin<true>(Index, Index, Index, const Matrix<float>&, const Matrix<float>&, double*, Index,
                                  double*);
template void multiply_thin<false>(Index, Index, Index, const Matrix<double>&, const Matrix<double>&, double*, Index,
                                   double*);
template void multiply<double, double>(Index, Index, Index, const Matrix<double>&, const Matrix<double>&, double*,
                                       Index, double*);
template void multiply<float, std::int64_t>(Index, Index, Index, const Matrix<float>&, const Matrix<float>&,
                                            std::int64_t*, Index, double*);
template void multiply<std::uint64_t, std::uint64_t>(Index, Index, Index, const Matrix<std::int64_t>&,
                                                     const Matrix<std::int64_t>&, std::uint64_t*, Index, double*);
template void multiply_dot2(Index, Index, Index, const Matrix<double>&, const Matrix<double>&, double*, Index);
template void multiply_screened(Index, Index, Index, const Matrix<float>&, const Matrix<float>&, double*, Index);

}  // namespace opconform::gemm
