#define PY_ARRAY_UNIQUE_SYMBOL opconform_numpy
#include "native_ref/bind/array.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <array>

namespace opconform::bind {

namespace {

// NumPy type number -> our code; ml_dtypes numbers are given out at run time.
std::array<std::int8_t, 1024> g_code_of_num{};
std::array<PyArray_Descr*, kDTypeCount> g_descr{};
Family* g_families = nullptr;

int import_numpy() {
  import_array1(-1);
  return 0;
}

int code_of(PyArray_Descr* d) {
  const int num = d->type_num;
  if (num < 0 || num >= static_cast<int>(g_code_of_num.size())) return -1;
  return g_code_of_num[static_cast<std::size_t>(num)] - 1;
}

// The attribute `code` of anything but a type; none where there is none.  Asked for once, by a name made once: it is on
// the way of every array that is filled or converted.
nb::object code_attribute(nb::handle h) {
  static PyObject* const name = PyUnicode_InternFromString("code");
  if (PyType_Check(h.ptr())) return {};
  PyObject* code = PyObject_GetAttr(h.ptr(), name);
  if (!code) PyErr_Clear();
  return nb::steal(code);
}

[[noreturn]] void bad_dtype(PyArray_Descr* d) {
  const nb::object s = nb::steal(PyObject_Str(reinterpret_cast<PyObject*>(d)));
  throw nb::type_error((std::string("no native dtype for NumPy ") + nb::cast<std::string>(s)).c_str());
}

}  // namespace

Family::Family(Fn f) : fn(f), next(g_families) { g_families = this; }

void init_arrays(nb::module_& m, nb::object descrs) {
  if (import_numpy() < 0) throw nb::python_error();
  std::size_t code = 0;
  for (nb::handle h : descrs) {
    PyArray_Descr* d = nullptr;
    if (!PyArray_DescrConverter(h.ptr(), &d)) throw nb::python_error();
    g_descr[code] = d;  // kept for the life of the process
    const auto num = static_cast<std::size_t>(d->type_num);
    if (num < g_code_of_num.size() && g_code_of_num[num] == 0) g_code_of_num[num] = static_cast<std::int8_t>(code + 1);
    ++code;
  }
  // the two spellings of the same width that a platform has (long / long long)
  for (int num : {NPY_LONG, NPY_LONGLONG})
    g_code_of_num[static_cast<std::size_t>(num)] = 1 + static_cast<std::int8_t>(DType::i64);
  for (int num : {NPY_ULONG, NPY_ULONGLONG})
    g_code_of_num[static_cast<std::size_t>(num)] = 1 + static_cast<std::int8_t>(DType::u64);
  for (Family* f = g_families; f; f = f->next) f->fn(m);
}

In as_array(nb::handle h) {
  In in;
  if (PyArray_Check(h.ptr())) {
    in.owner = nb::borrow(h);
  } else {
    PyObject* made = PyArray_FROM_O(h.ptr());
    if (!made) throw nb::python_error();
    in.owner = nb::steal(made);
  }
  auto* a = reinterpret_cast<PyArrayObject*>(in.owner.ptr());
  const int code = code_of(PyArray_DESCR(a));
  if (code < 0) bad_dtype(PyArray_DESCR(a));
  if (PyArray_ISBYTESWAPPED(a)) throw nb::type_error("array is byte-swapped");
  const int rank = PyArray_NDIM(a);
  if (rank > kMaxRank) throw nb::value_error("array has more than 16 axes");
  in.t.data = static_cast<char*>(PyArray_DATA(a));
  in.t.dtype = static_cast<DType>(code);
  in.t.rank = rank;
  for (int i = 0; i < rank; ++i) {
    in.t.shape[static_cast<std::size_t>(i)] = PyArray_DIM(a, i);
    in.t.stride[static_cast<std::size_t>(i)] = PyArray_STRIDE(a, i);
  }
  return in;
}

void hold_numbers(const char* what, std::initializer_list<DType> types) {
  for (const DType d : types)
    if (d == DType::str) throw nb::type_error((std::string(what) + ": expected numbers, got strings").c_str());
}

bool is_array(nb::handle h) {
  if (!PyArray_Check(h.ptr())) return false;
  auto* a = reinterpret_cast<PyArrayObject*>(h.ptr());
  return code_of(PyArray_DESCR(a)) >= 0 && !PyArray_ISBYTESWAPPED(a) && PyArray_NDIM(a) <= kMaxRank;
}

DType as_dtype(nb::handle h, DType none) { return h.is_none() ? none : as_dtype(h); }

DType as_dtype(nb::handle h) {
  long code = -1;
  if (PyArray_DescrCheck(h.ptr())) {  // first: asking it for an attribute that it lacks costs more than all the rest
    auto* d = reinterpret_cast<PyArray_Descr*>(h.ptr());
    code = code_of(d);
    if (code < 0) bad_dtype(d);
    return static_cast<DType>(code);
  }
  if (PyLong_Check(h.ptr())) {
    code = PyLong_AsLong(h.ptr());
  } else if (const nb::object own = code_attribute(h); own.is_valid()) {
    code = PyLong_AsLong(own.ptr());
  } else {
    PyArray_Descr* d = nullptr;
    if (!PyArray_DescrConverter(h.ptr(), &d)) throw nb::python_error();
    code = code_of(d);
    if (code < 0) bad_dtype(d);
    Py_DECREF(reinterpret_cast<PyObject*>(d));
  }
  if (PyErr_Occurred()) throw nb::python_error();
  if (code < 0 || code >= kDTypeCount) throw nb::value_error("dtype code out of range");
  return static_cast<DType>(code);
}

Out new_array(DType d, std::span<const Index> shape) {
  if (shape.size() > kMaxRank) throw nb::value_error("array has more than 16 axes");
  Out o;
  PyArray_Descr* descr = g_descr[static_cast<std::size_t>(d)];
  Py_INCREF(reinterpret_cast<PyObject*>(descr));  // the call below steals it
  std::array<npy_intp, kMaxRank> dims{};
  o.t.rank = static_cast<int>(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) dims[i] = static_cast<npy_intp>(shape[i]);
  PyObject* a = PyArray_NewFromDescr(&PyArray_Type, descr, o.t.rank, dims.data(), nullptr, nullptr, 0, nullptr);
  if (!a) throw nb::python_error();
  o.owner = nb::steal(a);
  o.t.data = static_cast<char*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(a)));
  o.t.dtype = d;
  Index step = o.t.bytes();
  for (int i = o.t.rank - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    o.t.shape[k] = shape[k];
    o.t.stride[k] = step;
    step *= shape[k];
  }
  return o;
}

int read_ints(nb::handle h, Index* to, int most, const char* what) {
  int n = 0;
  const auto one = [&](PyObject* v) {
    if (n == most) throw Error(std::string(what) + ": more than " + std::to_string(most) + " numbers");
    long long x = 0;
    if (PyLong_Check(v)) {
      x = PyLong_AsLongLong(v);
    } else {
      const nb::object i = nb::steal(PyNumber_Index(v));
      if (!i.is_valid()) throw nb::python_error();
      x = PyLong_AsLongLong(i.ptr());
    }
    if (x == -1 && PyErr_Occurred()) throw nb::python_error();
    to[n++] = x;
  };
  if (PyTuple_Check(h.ptr())) {
    const Py_ssize_t size = PyTuple_Size(h.ptr());
    for (Py_ssize_t i = 0; i < size; ++i) one(PyTuple_GetItem(h.ptr(), i));
  } else if (PyLong_Check(h.ptr())) {
    one(h.ptr());
  } else {
    for (nb::handle v : h) one(v.ptr());
  }
  return n;
}

std::vector<Index> as_ints(nb::handle h) {
  std::vector<Index> out;
  const auto one = [&](nb::handle v) {
    nb::object i = nb::steal(PyNumber_Index(v.ptr()));
    if (!i.is_valid()) throw nb::python_error();
    const long long x = PyLong_AsLongLong(i.ptr());
    if (PyErr_Occurred()) throw nb::python_error();
    out.push_back(x);
  };
  if (PyLong_Check(h.ptr())) {
    one(h);
  } else {
    for (nb::handle v : h) one(v);
  }
  return out;
}

std::string text(std::span<const Index> v) {
  std::string s = "[";
  for (std::size_t i = 0; i < v.size(); ++i) s.append(i ? ", " : "").append(std::to_string(v[i]));
  return s.append("]");
}
std::string text(const Tensor& t) { return text({t.shape.data(), static_cast<std::size_t>(t.rank)}); }

void broadcast(std::span<const Tensor* const> in, Tensor& r, const char* what) {
  r.rank = 0;
  for (const Tensor* t : in) r.rank = t->rank > r.rank ? t->rank : r.rank;
  for (int a = 0; a < r.rank; ++a) {
    Index d = 1;
    for (const Tensor* t : in) {
      const int k = a - (r.rank - t->rank);
      const Index have = k < 0 ? 1 : t->dim(k);
      if (have == 1 || have == d) continue;
      if (d != 1) {
        std::string m = std::string(what) + ": shapes";
        for (const Tensor* u : in) m.append(" ").append(text(*u));
        throw Error(m + " do not broadcast");
      }
      d = have;
    }
    r.shape[static_cast<std::size_t>(a)] = d;
  }
}

Tensor expand(const Tensor& t, const Tensor& s) {
  Tensor r = t;
  r.rank = s.rank;
  for (int a = 0; a < s.rank; ++a) {
    const auto i = static_cast<std::size_t>(a);
    const int k = a - (s.rank - t.rank);
    r.shape[i] = s.shape[i];
    r.stride[i] = k < 0 || t.dim(k) == 1 ? 0 : t.step(k);
  }
  return r;
}

}  // namespace opconform::bind
