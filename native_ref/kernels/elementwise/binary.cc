#include "native_ref/kernels/elementwise/binary.h"

#include <algorithm>

#include "native_ref/core/block.h"

namespace opconform {
namespace {

constexpr auto kEntries = binary_table(binary::All{});

void run(const BinaryEntry& op, const Tensor& x, const Tensor& y, const Tensor& z, bool ints, bool is_signed) {
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
  if (op.direct && plain_f32(x) && plain_f32(y) && (op.to_bool ? z.contiguous() : plain_f32(z))) {
    const auto *u = reinterpret_cast<const float*>(x.data), *v = reinterpret_cast<const float*>(y.data);
    return op.direct(u, v, z.data, z.size());
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

OPCONFORM_TABLE const BinaryTable opconform_binary{sizeof(BinaryTable), kEntries.data(), kEntries.size(), run};

}  // namespace opconform
