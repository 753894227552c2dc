#include "native_ref/kernels/order/order.h"

#include "native_ref/bind/resolve.h"

namespace opconform::bind {

namespace {

const OrderTable& order_kernels() {
  static const OrderTable& k = table<OrderTable>("opconform_order");
  return k;
}

void want_real(const Tensor& x, const char* what) {
  if (!is_float(x.dtype) && !is_int(x.dtype)) throw Error(std::string(what) + ": no order for " + info(x.dtype).name);
}

nb::object rank(const In& x, Index axis, bool descending, nb::handle k) {
  want_real(x, "rank");
  const int a = axis_of(axis, x.t.rank, "rank");
  const Index most = x.t.dim(a);
  const Index n = k.is_none() ? most : nb::cast<Index>(k);
  if (n < 0 || n > most) throw Error("rank: " + std::to_string(n) + " of " + std::to_string(most));
  Tensor shape = x.t;
  shape.shape[static_cast<std::size_t>(a)] = n;
  Out y = new_like(shape, DType::i64);
  run(x.t.size() * 4, [&] { order_kernels().rank(x, a, descending, n, y.t); });
  return release(std::move(y));
}

nb::tuple unique(const In& x, Index axis, bool rising) {
  want_real(x, "unique");
  const int a = axis_of(axis, x.t.rank, "unique");
  const Index n[] = {x.t.dim(a)};
  Out first = new_array(DType::i64, n), inverse = new_array(DType::i64, n), counts = new_array(DType::i64, n);
  const auto ints = [](Out& o) { return reinterpret_cast<std::int64_t*>(o.t.data); };
  Index groups = 0;
  run(x.t.size() * 4, [&] { groups = order_kernels().unique(x, a, rising, ints(first), ints(inverse), ints(counts)); });
  return nb::make_tuple(groups, release(std::move(first)), release(std::move(inverse)), release(std::move(counts)));
}

}  // namespace

static const Family kOrderFamily{[](nb::module_& m) {
  m.def("rank", rank, nb::arg("x"), nb::arg("axis"), nb::arg("descending"), nb::arg("k").none());
  m.def("unique", unique, nb::arg("x"), nb::arg("axis"), nb::arg("rising"));
}};

}  // namespace opconform::bind
