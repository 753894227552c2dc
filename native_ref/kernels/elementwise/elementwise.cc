#include "native_ref/kernels/elementwise/elementwise.h"

#include <algorithm>

#include "native_ref/core/block.h"
#include "native_ref/kernels/elementwise/binary.h"
#include "native_ref/kernels/elementwise/unary.h"

namespace opconform {
namespace {

constexpr auto kUnary = unary_table(unary::All{});
constexpr auto kBinary = binary_table(binary::All{});

void run_unary(const UnaryEntry& op, const Tensor& x, const Tensor& y, const double* p, bool ints) {
  Reader in(x);
  Writer out(y);
  if (ints) {
    const auto fn = is_sint(x.dtype) ? op.s : op.u;
    alignas(64) std::int64_t block[kBlock];
    for (Index left = in.total(); left > 0; left -= kBlock) {
      const Index n = std::min(left, kBlock);
      in.next(block, n);
      fn(block, n);
      out.next(block, n);
    }
    return;
  }
  const auto fn = x.dtype == DType::f64 && op.wide ? op.wide : op.f;
  alignas(64) double block[kBlock];
  for (Index left = in.total(); left > 0; left -= kBlock) {
    const Index n = std::min(left, kBlock);
    in.next(block, n);
    fn(block, n, p);
    out.next(block, n);
  }
}

void run_binary(const BinaryEntry& op, const Tensor& x, const Tensor& y, const Tensor& z, bool ints, bool is_signed) {
  Reader a(x), b(y);
  Writer out(z);
  if (ints) {
    const auto fn = is_signed ? op.s : op.u;
    const int bits = info(x.dtype).bits;
    alignas(64) std::int64_t u[kBlock], v[kBlock];
    for (Index left = a.total(); left > 0; left -= kBlock) {
      const Index n = std::min(left, kBlock);
      a.next(u, n);
      b.next(v, n);
      fn(u, v, n, bits);
      out.next(u, n);
    }
    return;
  }
  const auto fn = op.wide && std::max(info(x.dtype).bits, info(y.dtype).bits) > 32 ? op.wide : op.f;
  alignas(64) double u[kBlock], v[kBlock];
  for (Index left = a.total(); left > 0; left -= kBlock) {
    const Index n = std::min(left, kBlock);
    a.next(u, n);
    fn(u, b.look(v, n), n);
    out.next(u, n);
  }
}

}  // namespace

OPCONFORM_TABLE const ElementwiseTable opconform_elementwise{sizeof(ElementwiseTable), kUnary.data(),  kUnary.size(),
                                                             kBinary.data(),           kBinary.size(), run_unary,
                                                             run_binary};

}  // namespace opconform
