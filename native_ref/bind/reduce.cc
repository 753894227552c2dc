#include "native_ref/kernels/reduce/reduce.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

DType result_type(const Tensor& x, nb::handle out) {
  const DType wide = is_float(x.dtype) ? DType::f64 : is_uint(x.dtype) ? DType::u64 : DType::i64;
  return as_dtype(out, wide);
}

int reduced_axis(Index axis, int rank) {
  const Index a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    throw Error("axis " + std::to_string(axis) + " out of range for rank " + std::to_string(rank));
  return static_cast<int>(a);
}

}  // namespace

static const Family kReduceFamily{[](nb::module_& m) {
  m.def(
      "reduce",
      [](int op, const In& x, nb::handle axes, bool keepdims, nb::handle out) {
        static const ReduceTable& k = table<ReduceTable>("opconform_reduce");
        hold_numbers("reduce", {x.t.dtype});
        std::uint32_t set = 0;
        if (axes.is_none()) {
          set = (1u << x.t.rank) - 1;
        } else {
          const Ints list(axes, "reduce: axes");
          for (int i = 0; i < list.n; ++i) set |= 1u << reduced_axis(list[i], x.t.rank);
        }
        Ints shape;
        for (int i = 0; i < x.t.rank; ++i)
          if (!((set >> i) & 1u)) shape.push_back(x.t.dim(i));
          else if (keepdims) shape.push_back(1);
        Out y = new_array(result_type(x, out), shape);
        if (is_int(y.t.dtype) && !is_int(x.t.dtype)) throw Error("reduce: a float input needs a float result");
        run(x.t.size(), [&] { k.reduce(static_cast<Reduction>(op), x, set, y.t); });
        return release(std::move(y));
      },
      nb::arg("op"), nb::arg("x"), nb::arg("axes").none(), nb::arg("keepdims"), nb::arg("out") = nb::none());
  m.def(
      "cumulate",
      [](bool product, const In& x, Index axis, bool exclusive, bool reverse, nb::handle out) {
        static const ReduceTable& k = table<ReduceTable>("opconform_reduce");
        Out y = new_like(x, result_type(x, out));
        const int a = reduced_axis(axis, x.t.rank);
        run(x.t.size(), [&] { k.cumulate(product, x, a, exclusive, reverse, y.t); });
        return release(std::move(y));
      },
      nb::arg("product"), nb::arg("x"), nb::arg("axis"), nb::arg("exclusive"), nb::arg("reverse"),
      nb::arg("out") = nb::none());
}};

}  // namespace opconform::bind
