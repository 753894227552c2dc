#include "native_ref/bind/resolve.h"

namespace opconform::bind {

namespace {

void want_row_major(const Tensor& x) {
  if (!x.contiguous()) throw Error("gather: x must be C-contiguous");
  if (x.dtype == DType::str) throw Error("gather: no version for objects");
}

nb::object gather(const In& x, const In& index, Index axis, int batch, bool is_signed) {
  want_row_major(x);
  const int a = axis_of(axis, x.t.rank, "gather");
  if (batch < 0 || batch > a || batch > index.t.rank) throw Error("gather: batch_dims " + std::to_string(batch));
  for (int i = 0; i < batch; ++i)
    if (x.t.dim(i) != index.t.dim(i)) throw Error("gather: batch axes of " + text(x.t) + " and " + text(index.t));
  const Index extent[] = {x.t.dim(a)};
  const std::vector<std::int64_t> at = resolved("gather", index, extent, is_signed);
  Ints shape;
  for (int i = 0; i < a; ++i) shape.push_back(x.t.dim(i));
  for (int i = batch; i < index.t.rank; ++i) shape.push_back(index.t.dim(i));
  for (int i = a + 1; i < x.t.rank; ++i) shape.push_back(x.t.dim(i));
  Out y = new_array(x.t.dtype, shape);
  if (y.t.size() > 0)
    run(y.t.size(), [&] {
      index_kernels().take(x.t.data, y.t.data, at.data(), product(x, 0, batch), product(x, batch, a), extent[0],
                     product(index, batch, index.t.rank), product(x, a + 1, x.t.rank) * x.t.bytes());
    });
  return release(std::move(y));
}

nb::object gather_elements(const In& x, const In& index, Index axis, bool is_signed) {
  if (x.t.dtype == DType::str) throw Error("gather_elements: no version for objects");
  const int a = axis_of(axis, x.t.rank, "gather_elements");
  bool fits = index.t.rank == x.t.rank;
  for (int i = 0; fits && i < x.t.rank; ++i) fits = i == a || index.t.dim(i) <= x.t.dim(i);
  if (!fits) throw Error("gather_elements: indices " + text(index.t) + " into " + text(x.t));
  const Index extent[] = {x.t.dim(a)};
  const std::vector<std::int64_t> at = resolved("gather", index, extent, is_signed);
  Out y = new_like(index, x.t.dtype);
  if (y.t.size() > 0) run(y.t.size(), [&] { index_kernels().take_along(x, at.data(), a, y.t); });
  return release(std::move(y));
}

nb::object gather_nd(const In& x, const In& index, int batch, bool is_signed) {
  want_row_major(x);
  if (batch < 0 || batch >= index.t.rank || batch >= x.t.rank) throw Error("gather_nd: batch_dims " + std::to_string(batch));
  const Index tuple = index.t.dim(index.t.rank - 1);
  if (tuple < 1 || tuple > x.t.rank - batch)
    throw Error("gather_nd: tuples of " + std::to_string(tuple) + " into " + text(x.t));
  for (int i = 0; i < batch; ++i)
    if (x.t.dim(i) != index.t.dim(i)) throw Error("gather_nd: batch axes of " + text(x.t) + " and " + text(index.t));
  const int first = batch + static_cast<int>(tuple);
  std::array<Index, kMaxRank> extents{}, steps{};
  for (int t = batch; t < first; ++t) {
    extents[static_cast<std::size_t>(t - batch)] = x.t.dim(t);
    steps[static_cast<std::size_t>(t - batch)] = product(x, t + 1, x.t.rank) * x.t.bytes();
  }
  const std::vector<std::int64_t> at = resolved("gather", index, {extents.data(), static_cast<std::size_t>(tuple)}, is_signed);
  Ints shape;
  for (int i = 0; i + 1 < index.t.rank; ++i) shape.push_back(index.t.dim(i));
  for (int i = first; i < x.t.rank; ++i) shape.push_back(x.t.dim(i));
  Out y = new_array(x.t.dtype, shape);
  const Index rows = product(index, 0, index.t.rank - 1), lead = product(x, 0, batch);
  if (y.t.size() > 0)
    run(y.t.size(), [&] {
      index_kernels().take_tuples(x.t.data, y.t.data, at.data(), steps.data(), tuple, rows, rows / lead,
                            product(x, batch, x.t.rank) * x.t.bytes(), product(x, first, x.t.rank) * x.t.bytes());
    });
  return release(std::move(y));
}

}  // namespace

static const Family kIndexFamily{[](nb::module_& m) {
  m.def("gather", gather, nb::arg("x"), nb::arg("index"), nb::arg("axis"), nb::arg("batch"), nb::arg("signed"));
  m.def("gather_elements", gather_elements, nb::arg("x"), nb::arg("index"), nb::arg("axis"), nb::arg("signed"));
  m.def("gather_nd", gather_nd, nb::arg("x"), nb::arg("index"), nb::arg("batch"), nb::arg("signed"));
}};

}  // namespace opconform::bind
