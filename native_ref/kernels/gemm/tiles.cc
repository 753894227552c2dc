// Products of packed blocks, which know nothing of where elements came from.
#include <algorithm>

#include "native_ref/kernels/gemm/gemm.h"
#include "native_ref/kernels/gemm/tile.h"

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

namespace {

// One sum of dot2_tile's, step by step as there, with the error of a product from a fused multiply and add.
double dot2_sum(Index k, const double* a, Index a_step, const double* b, Index b_step) {
  double s = 0, c = 0;
  for (Index q = 0; q < k; ++q, a += a_step, b += b_step) {
    const double p = *a * *b, e = std::fma(*a, *b, -p);
    const double t = s + p, z = t - s;
    c += ((s - (t - z)) + (p - z)) + e;
    s = t;
  }
  return s + c;
}

}  // namespace

void dot2_block(Index m, Index cols, Index k, const double* pa, const double* pb, double* c, Index ldc) {
  constexpr int R = Dot2Shape::rows, NV = Dot2Shape::vecs, W = NV * kLanes<double>;
  alignas(64) double hi[R * W], lo[R * W];
  for (Index i = 0; i < m; i += R) {
    dot2_tile<R, NV>(k, pa + i * k, R, pb, hi, lo);
    for (Index x = 0; x < std::min<Index>(R, m - i); ++x)
      for (Index y = 0; y < cols; ++y) {
        double r = hi[x * W + y] + lo[x * W + y];
        // Something huge, which cannot be split where the machine does not fuse, or an infinity or NaN: the plain sum
        // says which.
        if (!std::isfinite(r)) r = dot2_sum(k, pa + i * k + x, R, pb + y, W);
        if (!std::isfinite(r)) {
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

template void multiply_block(Index, Index, Index, const double*, Index, const double*, double*, Index, bool);
template void multiply_block(Index, Index, Index, const float*, Index, const float*, std::int64_t*, Index, bool);
template void multiply_block(Index, Index, Index, const std::uint64_t*, Index, const std::uint64_t*, std::uint64_t*,
                             Index, bool);

}  // namespace opconform::gemm
