// Matrix products.  The left operand is a matrix, the right one anything that can give its rows: both are packed into
// panels of the accumulation type, so that element types, strides, transposes and image windows cost one conversion
// each and the inner loop is the same for all.
//
//   product.cc  packing, and the products     tiles.cc  packed blocks     thin.cc  a few rows, a single column
#pragma once

#include <cstdint>

namespace opconform::gemm {

using Index = std::int64_t;

template <class T>
struct Matrix {  // element strides
  const T* data;
  Index row_stride, col_stride;
  T at(Index i, Index j) const { return data[i * row_stride + j * col_stride]; }
};

// A right operand.
template <class T>
class Rows {
 public:
  const T* ready;  // where all rows lie in memory, their elements side by side and the rows `step` apart; else null
  Index step;
  // n elements of row k from column j on: a pointer to where they lie or to scratch
  const T* row(Index k, Index j, Index n, T* scratch) const {
    return ready ? ready + k * step + j : make(k, j, n, scratch);
  }

 protected:
  explicit Rows(const T* where = nullptr, Index apart = 0) : ready(where), step(apart) {}
  ~Rows() = default;
  virtual const T* make(Index k, Index j, Index n, T* scratch) const = 0;
};

template <class T>
class MatrixRows final : public Rows<T> {
 public:
  explicit MatrixRows(const Matrix<T>& m) : Rows<T>(m.col_stride == 1 ? m.data : nullptr, m.row_stride), m_(m) {}

 private:
  const T* make(Index k, Index j, Index n, T* scratch) const override {
    const T* p = m_.data + k * m_.row_stride + j * m_.col_stride;
    for (Index i = 0; i < n; ++i) scratch[i] = p[i * m_.col_stride];
    return scratch;
  }
  Matrix<T> m_;
};

// c[i * ldc + j] = sum over k of a(i, k) * b(k, j).
template <class T, class C>
using Product = void (*)(Index m, Index n, Index k, const Matrix<T>& a, const Rows<T>& b, C* c, Index ldc);

// Plain f64 sums within blocks of depth 256, and across them.
void multiply_plain(Index m, Index n, Index k, const Matrix<double>& a, const Rows<double>& b, double* c, Index ldc);
// Narrow float operands (exact in f32): plain f64 sums, then Dot2 for elements with sum|a||b| > 2^20 |result|, which
// Cauchy and Schwarz' bound (row norm times column norm) finds without another product.
void multiply_screened(Index m, Index n, Index k, const Matrix<float>& a, const Rows<float>& b, double* c, Index ldc);
// In twice the precision of f64, rounded once.
void multiply_dot2(Index m, Index n, Index k, const Matrix<double>& a, const Rows<double>& b, double* c, Index ldc);
// 8-bit integers: exact f32 sums within a block, integer sums across blocks.
void multiply_bytes(Index m, Index n, Index k, const Matrix<float>& a, const Rows<float>& b, std::int64_t* c,
                    Index ldc);
// Modulo 2^64.
void multiply_integers(Index m, Index n, Index k, const Matrix<std::int64_t>& a, const Rows<std::int64_t>& b,
                       std::int64_t* c, Index ldc);

// A few rows, the rows of b contiguous: b is read in place, nothing is packed.  The order of sums is that of
// ``multiply_plain``; squares (with Squared) receives the sum of squares of each column of b.
template <bool Squared, class T>
void multiply_thin(Index m, Index n, Index k, const Matrix<T>& a, const Matrix<T>& b, double* c, Index ldc,
                   double* squares = nullptr);
// A matrix, rows contiguous, times a vector, redone by Dot2 where plain sums are not enough (see multiply_screened).
void multiply_vector(Index m, Index k, const Matrix<float>& a, const double* x, double* c);
// Dot2 of one row and one column, for the few elements where plain f64 sums are not enough.
double dot2(Index n, const double* x, const double* y);

// Depth of one block.  Part of the meaning: partial sums are added up per block, and bits must not depend on the
// machine.
inline constexpr Index kDepth = 256;

// c[i * ldc + j] (+)= the packed rows pa (`lda` apart) times the panels pb of `kc` rows; `first` block: =, else +=.
template <class Acc, class Out>
void multiply_block(Index m, Index n, Index kc, const Acc* pa, Index lda, const Acc* pb, Out* c, Index ldc,
                    bool first);
// At most one panel of columns in twice the precision, rounded once.
void dot2_block(Index m, Index cols, Index k, const double* pa, const double* pb, double* c, Index ldc);

}  // namespace opconform::gemm
