#include "native_ref/kernels/scatter/scatter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "native_ref/core/block.h"

namespace opconform {
namespace {

// f(c, v) gives the cell c with the update v in it.
struct Add {
  static double of(double c, double v) { return c + v; }
  static std::uint64_t of(std::uint64_t c, std::uint64_t v) { return c + v; }
};
struct Sub {
  static double of(double c, double v) { return c - v; }
  static std::uint64_t of(std::uint64_t c, std::uint64_t v) { return c - v; }
};
struct Mul {
  static double of(double c, double v) { return c * v; }
  static std::uint64_t of(std::uint64_t c, std::uint64_t v) { return c * v; }
};
struct Div {
  static double of(double c, double v) { return c / v; }
};
template <bool Max>
struct Extreme {
  static double of(double c, double v) {
    if (c == v) {
      const auto a = std::bit_cast<std::uint64_t>(c), b = std::bit_cast<std::uint64_t>(v);
      return std::bit_cast<double>(Max ? a & b : a | b);  // they differ in the sign of zero at most
    }
    return c != c || (Max ? c > v : c < v) ? c : v;
  }
  static std::uint64_t of(std::uint64_t c, std::uint64_t v) { return Max ? std::max(c, v) : std::min(c, v); }
};
// Signed integers in the order of unsigned ones, and back.
constexpr std::uint64_t kSign = 1ull << 63;
template <bool Max>
struct SignedExtreme {
  static std::uint64_t of(std::uint64_t c, std::uint64_t v) { return Extreme<Max>::of(c ^ kSign, v ^ kSign) ^ kSign; }
};

// Every update in turn; `cells` holds y, its elements made of `Parts` numbers (complex: two).
template <class Op, int Parts, class T, class Read>
void combine(T* cells, const std::int64_t* place, Index inner, Reader& updates, Read) {
  Read block[kBlock];
  const Index row = inner * Parts;
  Index j = 0;
  T* to = nullptr;
  for (Index left = updates.total(); left > 0;) {
    const Index n = std::min(left, kBlock);
    updates.next(block, n);
    for (Index i = 0; i < n; i += Parts) {
      if (j == 0) to = cells + *place++ * Parts;
      if constexpr (Parts == 2)
        Op::pair(to + j, static_cast<T>(block[i]), static_cast<T>(block[i + 1]));
      else
        to[j] = Op::of(to[j], static_cast<T>(block[i]));
      j += Parts;
      if (j == row) j = 0;
    }
    left -= n;
  }
}

struct ComplexAdd {
  static void pair(double* c, double re, double im) { c[0] += re, c[1] += im; }
};
struct ComplexSub {
  static void pair(double* c, double re, double im) { c[0] -= re, c[1] -= im; }
};
struct ComplexMul {
  static void pair(double* c, double re, double im) {
    const double a = c[0], b = c[1];
    c[0] = a * re - b * im, c[1] = a * im + b * re;
  }
};

// A complex tensor as reals, the parts of an element side by side.
Tensor parts(const Tensor& t) {
  Tensor r = t;
  r.dtype = t.dtype == DType::c64 ? DType::f32 : DType::f64;
  r.shape[static_cast<std::size_t>(r.rank)] = 2;
  r.stride[static_cast<std::size_t>(r.rank)] = r.bytes();
  ++r.rank;
  return r;
}

void widen(const Tensor& x, const Tensor& y) {
  Reader(x).next(reinterpret_cast<double*>(y.data), x.size());
}
void copy_bits(const Tensor& x, char* to) {
  const auto bytes = at(x.bytes());
  Walk<1> walk({&x});
  for (Index left = walk.total(); left > 0;) {
    const Index n = std::min(left, walk.run());
    const char* from = walk.ptr(0);
    for (Index i = 0; i < n; ++i, from += walk.step(0), to += bytes) std::memcpy(to, from, bytes);
    walk.advance(n);
    left -= n;
  }
}

void copy(const Tensor& y, const std::int64_t* place, Index inner, const Tensor& updates) {
  const Index bytes = y.bytes();
  Walk<1> walk({&updates});
  Index j = 0;
  char* to = nullptr;
  for (Index left = walk.total(); left > 0;) {
    const Index n = std::min(left, walk.run());
    const char* from = walk.ptr(0);
    for (Index i = 0; i < n; ++i, from += walk.step(0)) {
      if (j == 0) to = y.data + *place++ * bytes;
      std::memcpy(to + j * bytes, from, at(bytes));
      if (++j == inner) j = 0;
    }
    walk.advance(n);
    left -= n;
  }
}

void floats(Combine how, const Tensor& y, const std::int64_t* place, Index inner, const Tensor& updates) {
  auto* cells = reinterpret_cast<double*>(y.data);
  Reader in(updates);
  switch (how) {
    case Combine::add: return combine<Add, 1>(cells, place, inner, in, double{});
    case Combine::sub: return combine<Sub, 1>(cells, place, inner, in, double{});
    case Combine::mul: return combine<Mul, 1>(cells, place, inner, in, double{});
    case Combine::div: return combine<Div, 1>(cells, place, inner, in, double{});
    case Combine::max: return combine<Extreme<true>, 1>(cells, place, inner, in, double{});
    case Combine::min: return combine<Extreme<false>, 1>(cells, place, inner, in, double{});
    case Combine::none: break;
  }
}

void complexes(Combine how, const Tensor& y, const std::int64_t* place, Index inner, const Tensor& updates) {
  auto* cells = reinterpret_cast<double*>(y.data);
  Reader in(parts(updates));
  switch (how) {
    case Combine::add: return combine<ComplexAdd, 2>(cells, place, inner, in, double{});
    case Combine::sub: return combine<ComplexSub, 2>(cells, place, inner, in, double{});
    case Combine::mul: return combine<ComplexMul, 2>(cells, place, inner, in, double{});
    default: throw Error("scatter: complex numbers have no order, and no division here");
  }
}

// In 64 bits and wrapped once at the end: low bits do not depend on high ones, and max and min only choose.
void integers(Combine how, const Tensor& x, const Tensor& y, const std::int64_t* place, Index inner, const Tensor& updates) {
  std::vector<std::int64_t> wide(at(y.size()));
  Reader(x).next(wide.data(), x.size());
  auto* cells = reinterpret_cast<std::uint64_t*>(wide.data());
  Reader in(updates);
  const bool is_signed = is_sint(y.dtype);
  if (is_bool(y.dtype)) how = how == Combine::add ? Combine::max : how == Combine::mul ? Combine::min : how;
  switch (how) {
    case Combine::add: combine<Add, 1>(cells, place, inner, in, std::int64_t{}); break;
    case Combine::sub: combine<Sub, 1>(cells, place, inner, in, std::int64_t{}); break;
    case Combine::mul: combine<Mul, 1>(cells, place, inner, in, std::int64_t{}); break;
    case Combine::max:
      is_signed ? combine<SignedExtreme<true>, 1>(cells, place, inner, in, std::int64_t{})
                : combine<Extreme<true>, 1>(cells, place, inner, in, std::int64_t{});
      break;
    case Combine::min:
      is_signed ? combine<SignedExtreme<false>, 1>(cells, place, inner, in, std::int64_t{})
                : combine<Extreme<false>, 1>(cells, place, inner, in, std::int64_t{});
      break;
    default: throw Error("scatter: no division of integers");
  }
  Writer(y).next(wide.data(), y.size());
}

void write(Combine how, const Tensor& x, const std::int64_t* place, Index inner, const Tensor& updates, const Tensor& y) {
  if (how == Combine::none) {
    copy_bits(x, y.data);
    return copy(y, place, inner, updates);
  }
  if (is_int(y.dtype)) return integers(how, x, y, place, inner, updates);
  if (is_float(y.dtype)) {
    widen(x, y);
    return floats(how, y, place, inner, updates);
  }
  widen(parts(x), y);
  complexes(how, y, place, inner, updates);
}

bool repeated(const std::int64_t* place, Index rows, Index extent) {
  std::vector<bool> seen(at(extent));
  for (Index r = 0; r < rows; ++r) {
    if (seen[at(place[r])]) return true;
    seen[at(place[r])] = true;
  }
  return false;
}

}  // namespace

OPCONFORM_TABLE const ScatterTable opconform_scatter{sizeof(ScatterTable), write, repeated};

}  // namespace opconform
