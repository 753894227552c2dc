#include "native_ref/kernels/compare/compare.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

const CompareTable& compare_kernels() {
  static const CompareTable& k = table<CompareTable>("opconform_compare");
  return k;
}

struct Result : Comparison {
  nb::object mask, ulp;
};

Tensor scalar(const double& v) {
  Tensor t;
  t.data = reinterpret_cast<char*>(const_cast<double*>(&v));
  return t;
}

bool same_shape(const Tensor& a, const Tensor& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.dim(i) != b.dim(i)) return false;
  return true;
}

Result compare(const In& a, const In& w, nb::handle bound, double ulps, bool signed_zero, bool flush, bool detail) {
  if (!same_shape(a, w)) throw Error("compare: shapes " + text(a) + " and " + text(w) + " differ");
  const DType d = a.t.dtype, e = w.t.dtype;
  if (!(is_int(d) && d == e) && !(is_float(d) && (e == d || e == DType::f64)))
    throw Error(std::string("compare: cannot judge ") + info(d).name + " by " + info(e).name);
  double one = 0;
  In array;
  Tensor limit;
  if (bound.is_none() || PyFloat_Check(bound.ptr()) || PyLong_Check(bound.ptr())) {
    if (!bound.is_none()) one = nb::cast<double>(bound);
    limit = expand(scalar(one), a);
  } else {
    array = as_array(bound);
    if (array.t.dtype != DType::f64) throw Error("compare: bound must be f64");
    Tensor shape;
    const std::array<const Tensor*, 2> both{&a.t, &array.t};
    broadcast(both, shape, "compare bound");
    if (!same_shape(shape, a)) throw Error("compare: bound " + text(array) + " does not fit " + text(a));
    limit = expand(array, a);
  }
  Result r;
  std::uint8_t* mask = nullptr;
  double* ulp = nullptr;
  if (detail) {
    Out m = new_like(a, DType::boolean), u = new_like(a, DType::f64);
    mask = reinterpret_cast<std::uint8_t*>(m.t.data);
    ulp = reinterpret_cast<double*>(u.t.data);
    r.mask = release(std::move(m));
    r.ulp = release(std::move(u));
  } else {
    r.mask = r.ulp = nb::none();
  }
  run(a.t.size(), [&] { compare_kernels().compare(a, w, limit, {ulps, signed_zero, flush}, r, mask, ulp); });
  return r;
}

// 0: open, 1: agrees, 2: agrees and says nothing.  Anything but two arrays of one real type and shape is open.
int brief(nb::handle actual, nb::handle value, nb::handle wide, int how, double ulps, bool signed_zero, bool flush) {
  if (!is_array(actual) || !is_array(value)) return 0;
  const In a = as_array(actual), v = as_array(value);
  const DType d = a.t.dtype;
  if (d != v.t.dtype || !same_shape(a, v) || d == DType::f8e8m0 || !(is_int(d) || is_float(d))) return 0;
  In w;
  if (!wide.is_none()) {
    w = as_array(wide);
    if (w.t.dtype != DType::f64 || !same_shape(a, w)) return 0;
  }
  Brief r = Brief::open;
  run(a.t.size(), [&] {
    r = compare_kernels().brief(a, v, wide.is_none() ? nullptr : &w.t, static_cast<Judging>(how),
                                {ulps, signed_zero, flush});
  });
  return static_cast<int>(r);
}

nb::object ulp_diff(const In& a, const In& b) {
  if (!same_shape(a, b) || a.t.dtype != b.t.dtype)
    throw Error(std::string("ulp_diff: ") + info(a.t.dtype).name + text(a) + " and " + info(b.t.dtype).name + text(b) +
                " differ in type or shape");
  if (!is_int(a.t.dtype) && !is_float(a.t.dtype)) throw Error("ulp_diff: integer and float types only");
  Out y = new_like(a, DType::f64);
  run(y.t.size(), [&] { compare_kernels().ulp_diff(a, b, y.t); });
  return release(std::move(y));
}

}  // namespace

static const Family kCompareFamily{[](nb::module_& m) {
  nb::class_<Result>(m, "Comparison")
      .def_ro("size", &Result::size)
      .def_ro("bad", &Result::bad)
      .def_ro("first", &Result::first)
      .def_ro("worst", &Result::worst)
      .def_ro("max_ulp", &Result::max_ulp)
      .def_ro("max_abs", &Result::max_abs)
      .def_ro("max_ratio", &Result::max_ratio)
      .def_ro("nan_bad", &Result::nan_bad)
      .def_ro("inf_bad", &Result::inf_bad)
      .def_ro("zero_sign", &Result::zero_sign)
      .def_ro("flushed", &Result::flushed)
      .def_ro("uninformative", &Result::uninformative)
      .def_ro("zeros", &Result::zeros)
      .def_ro("mask", &Result::mask)
      .def_ro("ulp", &Result::ulp);
  m.def("compare", compare, nb::arg("actual"), nb::arg("reference"), nb::arg("bound") = nb::none(), nb::arg("ulps") = 0.0,
        nb::arg("signed_zero") = false, nb::arg("flush") = false, nb::arg("detail") = false);
  m.def("brief", brief, nb::arg("actual").none(), nb::arg("value").none(), nb::arg("wide").none(), nb::arg("how"), nb::arg("ulps"),
        nb::arg("signed_zero"), nb::arg("flush"));
  m.attr("MOST") = kMost;
  m.attr("DULL") = kDull;
  m.attr("SMALL") = kSmall;
  m.def("ulp_diff", ulp_diff, nb::arg("a"), nb::arg("b"));
}};

}  // namespace opconform::bind
