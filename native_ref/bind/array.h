// NumPy arrays in and out of the kernels, ml_dtypes included.
//
// Arrays cross as `In` (any strides, any of our dtypes) and results are made by new_array().  NumPy's own C API is used
// directly: ml_dtypes arrays have neither a buffer nor a DLPack export, and it costs some 20 ns an array.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "native_ref/core/table.h"
#include "native_ref/core/tensor.h"

namespace opconform::bind {

namespace nb = nanobind;

// An argument: a view of the array and a reference that keeps it alive.
struct In {
  nb::object owner;
  Tensor t;
  operator const Tensor&() const { return t; }
};

// A view of an array (anything else goes through np.asarray first).  Throws TypeError / ValueError.
In as_array(nb::handle h);

// Throws TypeError, naming `what`, where one of them holds strings.
void hold_numbers(const char* what, std::initializer_list<DType> types);

// Is it an array already, of a type that has a code?
bool is_array(nb::handle h);

// A dtype argument: a harness DType (anything with .code), its number, a NumPy dtype or scalar type; None gives `none`.
DType as_dtype(nb::handle h);
DType as_dtype(nb::handle h, DType none);

// A new C-contiguous, uninitialised array and a view of it.
struct Out {
  nb::object owner;
  Tensor t;
};
Out new_array(DType d, std::span<const Index> shape);
inline Out new_like(const Tensor& x, DType d) { return new_array(d, {x.shape.data(), static_cast<std::size_t>(x.rank)}); }
// NumPy-style: give `owner` back to Python.
inline nb::object release(Out&& o) { return std::move(o.owner); }

// A sequence of Python ints (tuple, list, array, or one int).
std::vector<Index> as_ints(nb::handle h);
// The same into `to`, at most `most` of them; how many.  Throws Error naming `what` beyond that.
int read_ints(nb::handle h, Index* to, int most, const char* what);
// A list of sizes or the like that is no longer than a shape may be, kept on the stack.
struct Ints {
  std::array<Index, 2 * kMaxRank> v{};
  int n = 0;
  Ints() = default;
  Ints(nb::handle h, const char* what) : n(read_ints(h, v.data(), 2 * kMaxRank, what)) {}
  void push_back(Index i) { v[static_cast<std::size_t>(n++)] = i; }
  Index operator[](int i) const { return v[static_cast<std::size_t>(i)]; }
  operator std::span<const Index>() const { return {v.data(), static_cast<std::size_t>(n)}; }
};

// "[2, 3]" for messages.
std::string text(const Tensor& t);
std::string text(std::span<const Index> v);

// Common shape under NumPy broadcasting, and a view of t expanded to it (strides 0).  Throws Error naming `what`.
void broadcast(std::span<const Tensor* const> in, Tensor& shape_of_result, const char* what);
Tensor expand(const Tensor& t, const Tensor& shape);

// Runs fn without the GIL when there is enough work to pay for letting it go.
template <class Fn>
void run(Index work, Fn&& fn) {
  if (work < 4096) {
    fn();
  } else {
    nb::gil_scoped_release free;
    fn();
  }
}

// A binding file registers itself: `static const Family kGemmFamily{[](nb::module_& m) { m.def(...); }};`
struct Family {
  using Fn = void (*)(nb::module_&);
  explicit Family(Fn fn);
  Fn fn;
  Family* next;
};

}  // namespace opconform::bind

namespace nanobind::detail {
template <>
struct type_caster<opconform::bind::In> {
  NB_TYPE_CASTER(opconform::bind::In, const_name("numpy.ndarray"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    if (src.is_none()) return false;
    try {
      value = opconform::bind::as_array(src);
      return true;
    } catch (python_error& e) {
      e.restore();
      PyErr_Clear();
      return false;
    } catch (...) {
      return false;
    }
  }
  static handle from_cpp(const opconform::bind::In& v, rv_policy, cleanup_list*) noexcept {
    return handle(v.owner).inc_ref();
  }
};
}  // namespace nanobind::detail
