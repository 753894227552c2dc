#include "native_ref/kernels/elementwise/elementwise.h"

#include <string_view>
#include <unordered_map>

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

const UnaryTable& unary_kernels() {
  static const UnaryTable& k = table<UnaryTable>("opconform_unary");
  return k;
}
const BinaryTable& binary_kernels() {
  static const BinaryTable& k = table<BinaryTable>("opconform_binary");
  return k;
}

template <class Entry>
const Entry& find(const char* family, const Entry* first, std::size_t count, nb::handle name) {
  static const std::unordered_map<std::string_view, const Entry*> by_name = [&] {
    std::unordered_map<std::string_view, const Entry*> m;
    for (std::size_t i = 0; i < count; ++i) m[first[i].name] = &first[i];
    return m;
  }();
  Py_ssize_t n = 0;
  const char* s = PyUnicode_AsUTF8AndSize(name.ptr(), &n);
  if (!s) throw nb::python_error();
  const auto it = by_name.find(std::string_view(s, static_cast<std::size_t>(n)));
  if (it == by_name.end()) throw Error(std::string(family) + ": no function called '" + s + "'");
  return *it->second;
}

void want_real(const char* what, const Tensor& t) {
  if (!is_float(t.dtype) && !is_int(t.dtype))
    throw Error(std::string(what) + ": no version for " + info(t.dtype).name);
}

nb::object unary(nb::handle name, const In& x, nb::handle params, nb::handle out) {
  const UnaryTable& k = unary_kernels();
  const UnaryEntry& op = find("unary", k.entries, k.count, name);
  want_real(op.name, x);
  double p[4]{};
  const Py_ssize_t given = PyTuple_Size(params.ptr());
  if (given < 0) throw nb::python_error();
  if (static_cast<int>(given) != op.params)
    throw Error(std::string(op.name) + ": takes " + std::to_string(op.params) + " parameters, got " +
                std::to_string(given));
  for (Py_ssize_t i = 0; i < given; ++i) {
    p[i] = PyFloat_AsDouble(PyTuple_GetItem(params.ptr(), i));
    if (p[i] == -1 && PyErr_Occurred()) throw nb::python_error();
  }
  const bool ints = is_int(x.t.dtype) && (is_sint(x.t.dtype) ? op.s : op.u);
  if (!ints && !op.f) throw Error(std::string(op.name) + ": no version for " + info(x.t.dtype).name);
  const DType d = op.to_bool ? DType::boolean : as_dtype(out, ints ? x.t.dtype : DType::f64);
  if (ints && !is_int(d)) throw Error(std::string(op.name) + ": an integer result cannot be stored as " + info(d).name);
  Out y = new_like(x, d);
  run(x.t.size(), [&] { k.run(op, x, y.t, p, ints); });
  return release(std::move(y));
}

nb::object binary(nb::handle name, const In& x, const In& y, nb::handle out) {
  const BinaryTable& k = binary_kernels();
  const BinaryEntry& op = find("binary", k.entries, k.count, name);
  want_real(op.name, x);
  want_real(op.name, y);
  const bool is_signed = is_sint(x.t.dtype);
  const bool ints = is_int(x.t.dtype) && is_int(y.t.dtype) && (is_signed ? op.s : op.u);
  if (!ints && !op.f)
    throw Error(std::string(op.name) + ": no version for " + info(x.t.dtype).name + " and " + info(y.t.dtype).name);
  if (ints && is_signed != is_sint(y.t.dtype) && info(y.t.dtype).bits == 64)
    throw Error(std::string(op.name) + ": " + info(x.t.dtype).name + " and " + info(y.t.dtype).name + " do not mix");
  const DType d = op.to_bool ? DType::boolean : as_dtype(out, ints ? x.t.dtype : DType::f64);
  if (ints && !is_int(d)) throw Error(std::string(op.name) + ": an integer result cannot be stored as " + info(d).name);
  Tensor shape;
  const std::array<const Tensor*, 2> both{&x.t, &y.t};
  broadcast(both, shape, op.name);
  Out z = new_like(shape, d);
  const Tensor a = expand(x, shape), b = expand(y, shape);
  run(z.t.size(), [&] { k.run(op, a, b, z.t, ints, is_signed); });
  return release(std::move(z));
}

}  // namespace

static const Family kElementwiseFamily{[](nb::module_& m) {
  m.def("unary", unary, nb::arg("name"), nb::arg("x"), nb::arg("params"), nb::arg("out") = nb::none());
  m.def("binary", binary, nb::arg("name"), nb::arg("x"), nb::arg("y"), nb::arg("out") = nb::none());
  nb::list u, b;
  for (std::size_t i = 0; i < unary_kernels().count; ++i) u.append(unary_kernels().entries[i].name);
  for (std::size_t i = 0; i < binary_kernels().count; ++i) b.append(binary_kernels().entries[i].name);
  m.attr("unary_names") = nb::tuple(u);
  m.attr("binary_names") = nb::tuple(b);
}};

}  // namespace opconform::bind
