#include "native_ref/kernels/elementwise/unary.h"

#include <algorithm>

#include "native_ref/core/block.h"

namespace opconform {
namespace {

constexpr auto kEntries = unary_table(unary::All{});

void run(const UnaryEntry& op, const Tensor& x, const Tensor& y, const double* p, bool ints) {
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
  if (op.direct && plain_f32(x) && plain_f32(y)) {
    const auto* from = reinterpret_cast<const float*>(x.data);
    auto* to = reinterpret_cast<float*>(y.data);
    const auto load = load_f64(DType::f32);
    const auto store = store_f64(DType::f32);
    for (Index left = x.size(); left > 0; left -= kBlock, from += kBlock, to += kBlock) {
      const Index n = std::min(left, kBlock);
      if (op.direct(from, to, n, p)) continue;
      load(reinterpret_cast<const char*>(from), sizeof(float), n, block);
      fn(block, n, p);
      store(block, reinterpret_cast<char*>(to), sizeof(float), n);
    }
    return;
  }
  for (Index left = in.total(); left > 0; left -= kBlock) {
    const Index n = std::min(left, kBlock);
    in.next(block, n);
    fn(block, n, p);
    out.next(block, n);
  }
}

}  // namespace

OPCONFORM_TABLE const UnaryTable opconform_unary{sizeof(UnaryTable), kEntries.data(), kEntries.size(), run};

}  // namespace opconform
