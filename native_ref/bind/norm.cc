#include "native_ref/kernels/norm/norm.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

static const Family kNormFamily{[](nb::module_& m) {
  m.def(
      "softmax",
      [](const In& x, Index axis, bool log, nb::handle out) {
        static const NormTable& k = table<NormTable>("opconform_norm");
        hold_numbers("softmax", {x.t.dtype});
        const Index a = axis < 0 ? axis + x.t.rank : axis;
        if (a < 0 || a >= x.t.rank) throw Error("softmax: axis " + std::to_string(axis) + " of " + text(x.t));
        Out y = new_like(x, as_dtype(out, DType::f64));
        run(x.t.size() * 4, [&] { k.softmax(x, static_cast<int>(a), log, y.t); });
        return release(std::move(y));
      },
      nb::arg("x"), nb::arg("axis"), nb::arg("log"), nb::arg("out") = nb::none());
}};

}  // namespace opconform::bind
