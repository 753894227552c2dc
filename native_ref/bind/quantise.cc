#include "native_ref/kernels/quantise/quantise.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

const QuantiseTable& quantise_kernels() {
  static const QuantiseTable& k = table<QuantiseTable>("opconform_quantise");
  return k;
}

nb::object requantise(const In& acc, const In& scale, Requantise q, nb::handle dtype) {
  if (!is_int(acc.t.dtype) || !is_float(scale.t.dtype)) throw Error("requantise: integers times a float scale expected");
  const DType d = as_dtype(dtype);
  if (!is_int(d)) throw Error(std::string("requantise: to an integer type, not ") + info(d).name);
  if (q.low > q.high) throw Error("requantise: limits " + std::to_string(q.low) + " and " + std::to_string(q.high));
  Tensor shape;
  const std::array<const Tensor*, 2> both{&acc.t, &scale.t};
  broadcast(both, shape, "requantise");
  Out y = new_like(shape, d);
  const Tensor a = expand(acc, shape), b = expand(scale, shape);
  if (y.t.size() > 0) run(y.t.size(), [&] { quantise_kernels().requantise(a, b, q, y.t); });
  return release(std::move(y));
}

// i16 holds every difference of 8-bit integers, i64 all others.
nb::object centre(const In& x, const In& zero) {
  if (!is_int(x.t.dtype) || !is_int(zero.t.dtype)) throw Error("centre: integers expected");
  if (info(x.t.dtype).bits > 32) throw Error(std::string("centre: ") + info(x.t.dtype).name + " is too wide");
  Tensor shape;
  const std::array<const Tensor*, 2> both{&x.t, &zero.t};
  broadcast(both, shape, "centre");
  if (shape.rank != x.t.rank || shape.size() != x.t.size()) throw Error("centre: zero points " + text(zero.t) + " of " + text(x.t));
  Out y = new_like(x, info(x.t.dtype).bits <= 8 && info(zero.t.dtype).bits <= 8 ? DType::i16 : DType::i64);
  const Tensor b = expand(zero, shape);
  if (y.t.size() > 0) run(y.t.size(), [&] { quantise_kernels().centre(x, b, y.t); });
  return release(std::move(y));
}

}  // namespace

static const Family kQuantiseFamily{[](nb::module_& m) {
  m.def("centre", centre, nb::arg("x"), nb::arg("zero"));
  m.def(
      "requantise",
      [](const In& acc, const In& scale, std::int64_t zero, std::int64_t low, std::int64_t high, bool wide, nb::handle dtype) {
        return requantise(acc, scale, {zero, low, high, wide}, dtype);
      },
      nb::arg("acc"), nb::arg("scale"), nb::arg("zero"), nb::arg("low"), nb::arg("high"), nb::arg("wide"), nb::arg("dtype"));
}};

}  // namespace opconform::bind
