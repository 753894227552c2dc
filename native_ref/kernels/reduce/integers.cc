#include "native_ref/kernels/reduce/cells.h"

namespace opconform::reducing {

const Cells& int_cells(Reduction op, bool is_unsigned) {
  using I = std::int64_t;
  using U = std::uint64_t;
  switch (op) {
    case Reduction::sum: return cells_of<WrapSum<0>>();
    case Reduction::sum_square: return cells_of<WrapSum<1>>();
    case Reduction::l1: return is_unsigned ? cells_of<WrapSum<0>>() : cells_of<WrapSum<2>>();
    case Reduction::prod: return cells_of<WrapProduct>();
    case Reduction::max: return is_unsigned ? cells_of<Extreme<U, true>>() : cells_of<Extreme<I, true>>();
    case Reduction::min: return is_unsigned ? cells_of<Extreme<U, false>>() : cells_of<Extreme<I, false>>();
    case Reduction::any: return cells_of<Truth<true>>();
    case Reduction::all: return cells_of<Truth<false>>();
    default: throw Error("reduce: this reduction of integers needs a float result");
  }
}

}  // namespace opconform::reducing
