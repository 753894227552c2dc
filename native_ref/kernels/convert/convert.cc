#include "native_ref/kernels/convert/convert.h"

#include "native_ref/core/block.h"
#include "native_ref/core/float_format.h"

namespace opconform {
namespace {

void convert(const Tensor& x, const Tensor& y, int rounding, bool saturate) {
  (void)rounding;
  (void)saturate;
  Reader in(x);
  Writer out(y);
  if (is_int(x.dtype) && is_int(y.dtype)) {
    std::int64_t block[kBlock];
    for (Index left = in.total(); left > 0;) {
      const Index n = left < kBlock ? left : kBlock;
      in.next(block, n);
      out.next(block, n);
      left -= n;
    }
    return;
  }
  double block[kBlock];
  for (Index left = in.total(); left > 0;) {
    const Index n = left < kBlock ? left : kBlock;
    in.next(block, n);
    out.next(block, n);
    left -= n;
  }
}

}  // namespace

OPCONFORM_TABLE const ConvertTable opconform_convert{sizeof(ConvertTable), convert};

}  // namespace opconform
