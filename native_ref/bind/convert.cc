#include "native_ref/kernels/convert/convert.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

static const Family kConvertFamily{[](nb::module_& m) {
  m.def(
      "convert",
      [](const In& x, nb::handle dtype, int rounding, bool saturate) {
        static const ConvertTable& k = table<ConvertTable>("opconform_convert");
        const DType to = as_dtype(dtype);
        hold_numbers("convert", {x.t.dtype, to});
        Out y = new_like(x, to);
        run(x.t.size(), [&] { k.convert(x, y.t, rounding, saturate); });
        return release(std::move(y));
      },
      nb::arg("x"), nb::arg("dtype"), nb::arg("rounding") = -1, nb::arg("saturate") = false);
}};

}  // namespace opconform::bind
