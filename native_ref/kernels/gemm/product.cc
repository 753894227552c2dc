// Products of a matrix with rows from anywhere: what is packed how, and when sums are done again.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "native_ref/kernels/gemm/gemm.h"
#include "native_ref/kernels/gemm/scratch.h"
#include "native_ref/kernels/gemm/tile.h"

namespace opconform::gemm {
namespace {

inline constexpr Index kRowsBlock = 96, kColsBlock = 384;

template <class Acc, class T>
void pack_a(const Matrix<T>& a, Index i0, Index m, Index k0, Index kc, int rows, Acc* out) {
  for (Index i = 0; i < m; i += rows, out += kc * rows) {
    const Index r = std::min<Index>(rows, m - i);
    const T* base = a.data + (i0 + i) * a.row_stride + k0 * a.col_stride;
    for (Index k = 0; k < kc; ++k) {
      const T* p = base + k * a.col_stride;
      Acc* o = out + k * rows;
      for (Index x = 0; x < r; ++x) o[x] = static_cast<Acc>(p[x * a.row_stride]);
      for (Index x = r; x < rows; ++x) o[x] = Acc{};
    }
  }
}

template <class Acc, class T>
void pack_b(const Rows<T>& b, Index k0, Index kc, Index j0, Index n, int width, Acc* out) {
  thread_local Scratch<T> scratch;
  T* buffer = scratch.get(n);
  for (Index k = 0; k < kc; ++k) {
    const T* p = b.row(k0 + k, j0, n, buffer);
    Acc* o = out + k * width;
    Index j = 0;
    for (; j + width <= n; j += width, o += kc * width)
      for (int x = 0; x < width; ++x) o[x] = static_cast<Acc>(p[j + x]);
    if (j < n) {
      for (Index x = 0; x < n - j; ++x) o[x] = static_cast<Acc>(p[j + x]);
      for (Index x = n - j; x < width; ++x) o[x] = Acc{};
    }
  }
}

// n elements of a row as f64 (which may be the row itself); the sum of their squares, in eight lanes on every machine.
template <class T>
inline double widen_row(Index n, const T* p, double* to) {
  constexpr int L = kLanes<double>, V = 8 / L;
  Vec<double> s[V] = {};
  Index q = 0;
  for (; q + 8 <= n; q += 8)
    for (int v = 0; v < V; ++v) {
      const Vec<double> e = load_as<double>(p + q + v * L);
      store(to + q + v * L, e);
      s[v] += e * e;
    }
  double lane[8];
  for (int v = 0; v < V; ++v) store(lane + v * L, s[v]);
  for (; q < n; ++q) {
    to[q] = static_cast<double>(p[q]);
    lane[0] += to[q] * to[q];
  }
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

// Rows [i0, i0 + m) of a, columns [k0, k0 + kc), as Acc, `lda` apart; rows up to the next full tile are zero.
// squares (may be null): gains the sum of squares of each row, in eight fixed lanes.
template <class Acc, class T>
void widen_a(const Matrix<T>& a, Index i0, Index m, Index k0, Index kc, Index lda, int rows, Acc* out,
             double* squares) {
  const T* base = a.data + i0 * a.row_stride + k0 * a.col_stride;
  if (a.col_stride == 1) {
    for (Index i = 0; i < m; ++i) {
      const T* p = base + i * a.row_stride;
      Acc* o = out + i * lda;
      if constexpr (std::is_same_v<Acc, double>)
        if (squares) {
          squares[i0 + i] += widen_row(kc, p, o);
          continue;
        }
      for (Index k = 0; k < kc; ++k) o[k] = static_cast<Acc>(p[k]);
    }
  } else {
    for (Index i = 0; i < m; i += rows)  // a few rows at a time, since a column of them lies close together
      for (Index k = 0; k < kc; ++k)
        for (Index x = i; x < std::min(m, i + rows); ++x)
          out[x * lda + k] = static_cast<Acc>(base[x * a.row_stride + k * a.col_stride]);
    if constexpr (std::is_same_v<Acc, double>)
      for (Index i = 0; squares && i < m; ++i) squares[i0 + i] += widen_row(kc, out + i * lda, out + i * lda);
  }
  for (Index i = m; i % rows; ++i) std::fill_n(out + i * lda, kc, Acc{});
}

// N vectors of columns, kc rows of them `step` apart, one after the other in a panel of `pitch` columns.
template <int N, class Acc, class T>
inline void panel_columns(const T* p, Index step, Index kc, Acc* out, Index pitch, double* squares) {
  constexpr Index L = kLanes<Acc>;
  [[maybe_unused]] Vec<Acc> sum[N] = {};
  if constexpr (std::is_same_v<Acc, double>)
    if (squares)
      for (int v = 0; v < N; ++v) sum[v] = load(squares + v * L);
  for (Index k = 0; k < kc; ++k, p += step, out += pitch)
    for (int v = 0; v < N; ++v) {
      const Vec<Acc> e = load_as<Acc>(p + v * L);
      store(out + v * L, e);
      if constexpr (std::is_same_v<Acc, double>) sum[v] += e * e;
    }
  if constexpr (std::is_same_v<Acc, double>)
    if (squares)
      for (int v = 0; v < N; ++v) store(squares + v * L, sum[v]);
}

// Columns [j0, j0 + n) of b, rows [k0, k0 + kc), in panels of `width` columns, the last one only as wide as it must be
// in whole vectors.  squares (may be null): gains the sum of squares of each column.
template <class Acc, class T>
void panel_b(const Rows<T>& b, Index k0, Index kc, Index j0, Index n, Acc* out, double* squares) {
  constexpr Index L = kLanes<Acc>, NV = Shape<Acc>::vecs, width = NV * L;
  const Index whole = n / width * width, rest = n - whole, last = (rest + L - 1) / L * L;
  const auto gained = [&](Index j) { return squares ? squares + j0 + j : nullptr; };
  // `count` rows at p, `step` apart, as rows k and on
  const auto widen = [&](const T* p, Index step, Index k, Index count) {
    for (Index j = 0; j < whole; j += width)
      panel_columns<NV>(p + j, step, count, out + j * kc + k * width, width, gained(j));
    Acc* o = out + whole * kc + k * last;
    Index j = whole;
    for (; j + L <= n; j += L) panel_columns<1>(p + j, step, count, o + (j - whole), last, gained(j));
    for (; j < n && count > 0; --count, p += step, o += last) {
      for (Index x = j; x < n; ++x) o[x - whole] = static_cast<Acc>(p[x]);
      for (Index x = j; squares && x < n; ++x) squares[j0 + x] += static_cast<double>(p[x]) * static_cast<double>(p[x]);
      std::fill(o + rest, o + last, Acc{});
    }
  };
  if (b.ready) return widen(b.ready + k0 * b.step + j0, b.step, 0, kc);
  thread_local Scratch<T> scratch;
  T* buffer = scratch.get(n);
  for (Index k = 0; k < kc; ++k) widen(b.row(k0 + k, j0, n, buffer), 0, k, 1);
}

// Accumulated in Acc within a block and in Out across blocks.
// squares (null, or m + n zeros): receives the sum of squares of each row of a, then of each column of b.
template <class Acc, class Out, class T>
void multiply(Index m, Index n, Index k, const Matrix<T>& a, const Rows<T>& b, Out* c, Index ldc,
              double* squares = nullptr) {
  constexpr int R = Shape<Acc>::rows, L = kLanes<Acc>;
  if (k == 0) {
    for (Index i = 0; i < m; ++i) std::fill_n(c + i * ldc, n, Out{});
    return;
  }
  thread_local Scratch<Acc> scratch_a, scratch_b;
  for (Index jc = 0; jc < n; jc += kColsBlock) {
    const Index nc = std::min(kColsBlock, n - jc);
    for (Index pc = 0; pc < k; pc += kDepth) {
      const Index kc = std::min(kDepth, k - pc);
      Acc* pb = scratch_b.get(kc * ((nc + L - 1) / L) * L);
      panel_b(b, pc, kc, jc, nc, pb, squares ? squares + m : nullptr);
      const Index lda = kc + 64 / static_cast<Index>(sizeof(Acc));  // rows must not fall on the same cache lines
      for (Index ic = 0; ic < m; ic += kRowsBlock) {
        const Index mc = std::min(kRowsBlock, m - ic);
        Acc* pa = scratch_a.get(lda * ((mc + R - 1) / R) * R);
        widen_a(a, ic, mc, pc, kc, lda, R, pa, jc == 0 ? squares : nullptr);
        multiply_block<Acc, Out>(mc, nc, kc, pa, lda, pb, c + ic * ldc + jc, ldc, pc == 0);
      }
    }
  }
}

// Whether every sum is exact in f64 anyway: whole numbers with k * max|a| * max|b| below 2^53.
bool exact_integers(Index m, Index n, Index k, const Matrix<float>& a, const Rows<float>& b, float* scratch) {
  const auto largest = [](double top, double v) { return v == std::trunc(v) ? std::max(top, std::abs(v)) : INFINITY; };
  double ta = 0, tb = 0;
  for (Index i = 0; i < m; ++i)
    for (Index q = 0; q < k; ++q) ta = largest(ta, static_cast<double>(a.at(i, q)));
  for (Index q = 0; q < k && ta < 0x1p53; ++q) {
    const float* p = b.row(q, 0, n, scratch);
    for (Index j = 0; j < n; ++j) tb = largest(tb, static_cast<double>(p[j]));
  }
  return ta * tb * static_cast<double>(k) < 0x1p53;
}

// Is c[i][j]^2 < na[i] * nb[j] * 2^-40 anywhere?
bool any_small(Index m, Index n, const double* na, const double* nb, const double* c, Index ldc) {
  constexpr int L = kLanes<double>;
  bool any = false;
  auto small = Vec<double>{} < Vec<double>{};
  for (Index i = 0; i < m; ++i, c += ldc) {
    const double scale = na[i] * 0x1p-40;
    Index j = 0;
    for (; j + L <= n; j += L) {
      const Vec<double> v = load(c + j);
      small |= v * v < (scale - Vec<double>{}) * load(nb + j);
    }
    for (; j < n; ++j) any |= c[j] * c[j] < scale * nb[j];
  }
  for (int l = 0; l < L; ++l) any |= small[l] != 0;
  return any;
}

}  // namespace

void multiply_plain(Index m, Index n, Index k, const Matrix<double>& a, const Rows<double>& b, double* c, Index ldc) {
  multiply<double>(m, n, k, a, b, c, ldc);
}
void multiply_bytes(Index m, Index n, Index k, const Matrix<float>& a, const Rows<float>& b, std::int64_t* c,
                    Index ldc) {
  multiply<float>(m, n, k, a, b, c, ldc);
}
void multiply_integers(Index m, Index n, Index k, const Matrix<std::int64_t>& a, const Rows<std::int64_t>& b,
                       std::int64_t* c, Index ldc) {
  multiply<std::uint64_t>(m, n, k, a, b, reinterpret_cast<std::uint64_t*>(c), ldc);  // signed sums might overflow
}

void multiply_dot2(Index m, Index n, Index k, const Matrix<double>& a, const Rows<double>& b, double* c, Index ldc) {
  constexpr int R = Dot2Shape::rows, W = Dot2Shape::vecs * kLanes<double>;
  thread_local Scratch<double> scratch_a, scratch_b;
  double* pa = scratch_a.get(k * ((m + R - 1) / R) * R + 1);
  pack_a(a, 0, m, 0, k, R, pa);
  for (Index j = 0; j < n; j += W) {
    const Index cols = std::min<Index>(W, n - j);
    double* pb = scratch_b.get(k * W + 1);
    pack_b(b, 0, k, j, cols, W, pb);
    dot2_block(m, cols, k, pa, pb, c + j, ldc);
  }
}

void multiply_screened(Index m, Index n, Index k, const Matrix<float>& a, const Rows<float>& b, double* c, Index ldc) {
  if (k < 2) return multiply<double>(m, n, k, a, b, c, ldc);
  thread_local Scratch<double> norms, line;
  double *na = norms.get(m + n), *nb = na + m;
  std::fill_n(na, m + n, 0.0);
  if (m <= 4 && b.ready) {
    multiply_thin<true>(m, n, k, a, Matrix<float>{b.ready, b.step, 1}, c, ldc, nb);
    widen_a(a, 0, m, 0, k, k, 1, line.get(m * k), na);
  } else {
    multiply<double>(m, n, k, a, b, c, ldc, na);
  }
  if (!any_small(m, n, na, nb, c, ldc)) return;
  thread_local Scratch<float> scratch;
  if (exact_integers(m, n, k, a, b, scratch.get(n))) return;
  for (Index i = 0; i < m; ++i) {
    const double scale = na[i] * 0x1p-40;
    double* row = c + i * ldc;
    if (!any_small(1, n, na + i, nb, row, ldc)) continue;
    double *x = line.get(2 * k), *y = x + k;
    for (Index q = 0; q < k; ++q) x[q] = static_cast<double>(a.at(i, q));
    for (Index j = 0; j < n; ++j) {
      if (!(row[j] * row[j] < scale * nb[j])) continue;
      if (b.ready)
        for (Index q = 0; q < k; ++q) y[q] = static_cast<double>(b.ready[q * b.step + j]);
      else
        for (Index q = 0; q < k; ++q) {
          float one;
          y[q] = static_cast<double>(*b.row(q, j, 1, &one));
        }
      row[j] = dot2(k, x, y);
    }
  }
}

}  // namespace opconform::gemm
