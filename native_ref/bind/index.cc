#include "native_ref/kernels/index/index.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

const IndexTable& kernels() {
  static const IndexTable& k = table<IndexTable>("opconform_index");
  return k;
}

// Counted from the front; an index outside raises IndexError "index I for extent N".
std::vector<std::int64_t> resolved(const Tensor& index, std::span<const Index> extents, bool is_signed) {
  if (!is_int(index.dtype)) throw Error(std::string("gather: indices are ") + info(index.dtype).name);
  std::vector<std::int64_t> to(static_cast<std::size_t>(index.size()));
  const auto tuple = static_cast<Index>(extents.size());
  const Index bad = to.empty() ? -1 : kernels().resolve(index, extents.data(), tuple, is_signed, to.data());
  if (bad >= 0) {
    const Index extent = extents[static_cast<std::size_t>(bad % tuple)];
    const std::int64_t v = to[static_cast<std::size_t>(bad)];
    const std::string seen = index.dtype == DType::u64 ? std::to_string(static_cast<std::uint64_t>(v)) : std::to_string(v);
    throw nb::index_error(("index " + seen + " for extent " + std::to_string(extent)).c_str());
  }
  return to;
}

void want_row_major(const Tensor& x) {
  if (!x.contiguous()) throw Error("gather: x must be C-contiguous");
  if (x.dtype == DType::str) throw Error("gather: no version for objects");
}

Index product(const Tensor& t, int from, int to) {
  Index n = 1;
  for (int i = from; i < to; ++i) n *= t.dim(i);
  return n;
}

int axis_of(Index axis, int rank, const char* what) {
  const Index a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    throw Error(std::string(what) + ": axis " + std::to_string(axis) + " out of range for rank " + std::to_string(rank));
  return static_cast<int>(a);
}

nb::object gather(const In& x, const In& index, Index axis, int batch, bool is_signed) {
  want_row_major(x);
  const int a = axis_of(axis, x.t.rank, "gather");
  if (batch < 0 || batch > a || batch > index.t.rank) throw Error("gather: batch_dims " + std::to_string(batch));
  for (int i = 0; i < batch; ++i)
    if (x.t.dim(i) != index.t.dim(i)) throw Error("gather: batch axes of " + text(x.t) + " and " + text(index.t));
  const Index extent[] = {x.t.dim(a)};
  const std::vector<std::int64_t> at = resolved(index, extent, is_signed);
  Ints shape;
  for (int i = 0; i < a; ++i) shape.push_back(x.t.dim(i));
  for (int i = batch; i < index.t.rank; ++i) shape.push_back(index.t.dim(i));
  for (int i = a + 1; i < x.t.rank; ++i) shape.push_back(x.t.dim(i));
  Out y = new_array(x.t.dtype, shape);
  if (y.t.size() > 0)
    run(y.t.size(), [&] {
      kernels().take(x.t.data, y.t.data, at.data(), product(x, 0, batch), product(x, batch, a), extent[0],
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
  const std::vector<std::int64_t> at = resolved(index, extent, is_signed);
  Out y = new_like(index, x.t.dtype);
  if (y.t.size() > 0) run(y.t.size(), [&] { kernels().take_along(x, at.data(), a, y.t); });
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
  const std::vector<std::int64_t> at = resolved(index, {extents.data(), static_cast<std::size_t>(tuple)}, is_signed);
  Ints shape;
  for (int i = 0; i + 1 < index.t.rank; ++i) shape.push_back(index.t.dim(i));
  for (int i = first; i < x.t.rank; ++i) shape.push_back(x.t.dim(i));
  Out y = new_array(x.t.dtype, shape);
  const Index rows = product(index, 0, index.t.rank - 1), lead = product(x, 0, batch);
  if (y.t.size() > 0)
    run(y.t.size(), [&] {
      kernels().take_tuples(x.t.data, y.t.data, at.data(), steps.data(), tuple, rows, rows / lead,
                            product(x, batch, x.t.rank) * x.t.bytes(), product(x, first, x.t.rank) * x.t.bytes());
    });
  return release(std::move(y));
}

nb::object rank(const In& x, Index axis, bool descending, nb::handle k) {
  if (!is_float(x.t.dtype) && !is_int(x.t.dtype)) throw Error(std::string("rank: no order for ") + info(x.t.dtype).name);
  const int a = axis_of(axis, x.t.rank, "rank");
  const Index most = x.t.dim(a);
  const Index n = k.is_none() ? most : nb::cast<Index>(k);
  if (n < 0 || n > most) throw Error("rank: " + std::to_string(n) + " of " + std::to_string(most));
  Tensor shape = x.t;
  shape.shape[static_cast<std::size_t>(a)] = n;
  Out y = new_like(shape, DType::i64);
  run(x.t.size() * 4, [&] { kernels().rank(x, a, descending, n, y.t); });
  return release(std::move(y));
}

nb::object fixed(const In& acc, const In& scale) {
  if (!is_int(acc.t.dtype) || !is_float(scale.t.dtype)) throw Error("fixed_multiply: integers times a float scale expected");
  Tensor shape;
  const std::array<const Tensor*, 2> both{&acc.t, &scale.t};
  broadcast(both, shape, "fixed_multiply");
  Out y = new_like(shape, DType::i64);
  const Tensor a = expand(acc, shape), b = expand(scale, shape);
  if (y.t.size() > 0) run(y.t.size(), [&] { kernels().fixed(a, b, y.t); });
  return release(std::move(y));
}

}  // namespace

static const Family reg{[](nb::module_& m) {
  m.def("gather", gather, nb::arg("x"), nb::arg("index"), nb::arg("axis"), nb::arg("batch"), nb::arg("signed"));
  m.def("gather_elements", gather_elements, nb::arg("x"), nb::arg("index"), nb::arg("axis"), nb::arg("signed"));
  m.def("gather_nd", gather_nd, nb::arg("x"), nb::arg("index"), nb::arg("batch"), nb::arg("signed"));
  m.def("rank", rank, nb::arg("x"), nb::arg("axis"), nb::arg("descending"), nb::arg("k").none());
  m.def("fixed_multiply", fixed, nb::arg("acc"), nb::arg("scale"));
}};

}  // namespace opconform::bind
