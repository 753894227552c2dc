#include "native_ref/kernels/resize/resize.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

static const Family kResizeFamily{[](nb::module_& m) {
  m.def(
      "interpolate",
      [](const In& x, Index axis, const In& index, const In& weight, nb::handle out) {
        static const ResizeTable& k = table<ResizeTable>("opconform_resize");
        const Index a = axis < 0 ? axis + x.t.rank : axis;
        if (a < 0 || a >= x.t.rank) throw Error("interpolate: axis " + std::to_string(axis) + " of " + text(x.t));
        if (index.t.rank != 2 || weight.t.rank != 2 || index.t.shape != weight.t.shape || index.t.dtype != DType::i64 ||
            weight.t.dtype != DType::f64 || !index.t.contiguous() || !weight.t.contiguous())
          throw Error("interpolate: index and weight must be contiguous i64 and f64 of one shape [outputs, taps]");
        const auto* at = reinterpret_cast<const std::int64_t*>(index.t.data);
        const Index n = x.t.dim(static_cast<int>(a));
        for (Index i = 0; i < index.t.size(); ++i)
          if (at[i] < 0 || at[i] >= n) throw Error("interpolate: index " + std::to_string(at[i]) + " of "
              + std::to_string(n));
        Tensor shape = x.t;
        shape.shape[static_cast<std::size_t>(a)] = index.t.dim(0);
        Out y = new_like(shape, as_dtype(out, DType::f64));
        run(y.t.size() * index.t.dim(1), [&] {
          k.interpolate(x, static_cast<int>(a), at, reinterpret_cast<const double*>(weight.t.data), index.t.dim(1),
              y.t);
        });
        return release(std::move(y));
      },
      nb::arg("x"), nb::arg("axis"), nb::arg("index"), nb::arg("weight"), nb::arg("out") = nb::none());
}};

}  // namespace opconform::bind
