// Protobuf messages from nested tuples.
//
// A message is a tuple (field number, value, field number, value, ...), written in that order.  The value says the form:
//   int     varint, negative numbers as 64-bit two's complement
//   float   fixed32: the nearest float
//   str     length and UTF-8; lone surrogates stand for raw bytes
//   bytes   length and bytes: a string, a packed field, or a message that is encoded already
//   tuple   a message
//   list    one field of that number for each element
//   None    nothing

#include <cmath>
#include <cstdint>
#include <cstring>

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

enum Wire : unsigned { kVarint = 0, kLength = 2, kFixed32 = 5 };

std::uint64_t whole_number(PyObject* v) {
  int over = 0;
  const long long i = PyLong_AsLongLongAndOverflow(v, &over);
  if (over) {
    const unsigned long long u = PyLong_AsUnsignedLongLong(v);  // the upper half of 64 bits; raises for the others
    if (PyErr_Occurred()) throw nb::python_error();
    return u;
  }
  if (i == -1 && PyErr_Occurred()) throw nb::python_error();
  return static_cast<std::uint64_t>(i);
}

class Protobuf {
 public:
  std::string out;

  void varint(std::uint64_t n) {
    for (; n > 127; n >>= 7) out.push_back(static_cast<char>((n & 127) | 128));
    out.push_back(static_cast<char>(n));
  }

  void message(PyObject* form) {
    const Py_ssize_t n = PyTuple_Size(form);
    if (n < 0) throw nb::python_error();
    if (n % 2) throw nb::value_error("a message is a tuple of field numbers and values");
    for (Py_ssize_t i = 0; i < n; i += 2) {
      const std::uint64_t number = whole_number(PyTuple_GetItem(form, i));
      PyObject* v = PyTuple_GetItem(form, i + 1);
      if (!PyList_Check(v)) {
        field(number, v);
        continue;
      }
      const Py_ssize_t count = PyList_Size(v);
      for (Py_ssize_t k = 0; k < count; ++k) field(number, PyList_GetItem(v, k));
    }
  }

 private:
  void tag(std::uint64_t number, Wire wire) { varint(number << 3 | wire); }

  void chunk(std::uint64_t number, const char* bytes, Py_ssize_t n) {
    tag(number, kLength);
    varint(static_cast<std::uint64_t>(n));
    out.append(bytes, static_cast<std::size_t>(n));
  }

  void field(std::uint64_t number, PyObject* v) {
    if (v == Py_None) return;
    if (PyUnicode_Check(v)) return text(number, v);
    if (PyTuple_Check(v)) return nested(number, v);
    if (PyBytes_Check(v)) return bytes(number, v);
    if (PyLong_Check(v)) {
      tag(number, kVarint);
      return varint(whole_number(v));
    }
    if (PyFloat_Check(v)) return number32(number, PyFloat_AsDouble(v));
    throw nb::type_error(("field " + std::to_string(number) + ": no value is of type " +
                          nb::cast<std::string>(nb::inst_name(v))).c_str());
  }

  void bytes(std::uint64_t number, PyObject* v) {
    char* at = nullptr;
    Py_ssize_t n = 0;
    PyBytes_AsStringAndSize(v, &at, &n);
    chunk(number, at, n);
  }

  void text(std::uint64_t number, PyObject* v) {
    Py_ssize_t n = 0;
    if (const char* at = PyUnicode_AsUTF8AndSize(v, &n)) return chunk(number, at, n);
    PyErr_Clear();
    const nb::object raw = nb::steal(PyUnicode_AsEncodedString(v, "utf-8", "surrogateescape"));
    if (!raw.is_valid()) throw nb::python_error();
    bytes(number, raw.ptr());
  }

  void nested(std::uint64_t number, PyObject* v) {
    tag(number, kLength);
    const std::size_t at = out.size();
    out.push_back('\0');  // most messages are short: a length of several bytes moves what was written
    message(v);
    std::uint64_t n = out.size() - at - 1;
    if (n > 127) {
      Protobuf length;
      length.varint(n);
      out.insert(at, length.out, 0, length.out.size() - 1);
      std::memcpy(out.data() + at, length.out.data(), length.out.size());
    } else {
      out[at] = static_cast<char>(n);
    }
  }

  void number32(std::uint64_t number, double wide) {
    const auto narrow = static_cast<float>(wide);
    if (std::isinf(narrow) && !std::isinf(wide)) {
      PyErr_SetString(PyExc_OverflowError, "float too large for 32 bits");
      throw nb::python_error();
    }
    tag(number, kFixed32);
    out.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);  // little-endian
  }
};

nb::bytes taken(const Protobuf& p) { return nb::bytes(p.out.data(), p.out.size()); }

const Family kProtobufFamily{[](nb::module_& m) {
  m.def("protobuf", [](nb::tuple form) {
    Protobuf p;
    p.out.reserve(4096);
    p.message(form.ptr());
    return taken(p);
  }, nb::arg("message"));
  m.def("varints", [](nb::list numbers) {
    Protobuf p;
    for (nb::handle n : numbers) p.varint(whole_number(n.ptr()));
    return taken(p);
  }, nb::arg("numbers"));
}};

}  // namespace

}  // namespace opconform::bind
