#include "native_ref/kernels/reduce/cells.h"

namespace opconform::reducing {

const Cells& float_cells(Reduction op, bool narrow) {
  switch (op) {
    case Reduction::sum: return cells_of<Sum<Identity>>();
    case Reduction::mean: return cells_of<Sum<Identity, MeanOf>>();
    case Reduction::prod: return cells_of<Product>();
    case Reduction::max: return cells_of<Extreme<double, true>>();
    case Reduction::min: return cells_of<Extreme<double, false>>();
    case Reduction::sum_square: return narrow ? cells_of<Sum<ExactSquare>>() : cells_of<Sum<Square>>();
    case Reduction::l1: return cells_of<Sum<Magnitude>>();
    case Reduction::l2: return narrow ? cells_of<Sum<ExactSquare, RootOf>>() : cells_of<Sum<Square, RootOf>>();
    case Reduction::log_sum: return cells_of<Sum<Identity, LogOf>>();
    case Reduction::log_sum_exp: return cells_of<LogSumExp>();
    case Reduction::any:
    case Reduction::all: break;
  }
  throw Error("reduce any/all: expected bool or integers");
}

}  // namespace opconform::reducing
