#include "native_ref/kernels/conv/conv.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

std::array<Index, 3> three(nb::handle h, int spatial, Index fill, const char* what) {
  const std::vector<Index> v = as_ints(h);
  if (static_cast<int>(v.size()) < spatial)
    throw Error(std::string(what) + ": expected " + std::to_string(spatial) + " numbers, got "
        + std::to_string(v.size()));
  std::array<Index, 3> out{fill, fill, fill};
  for (int i = 0; i < spatial; ++i) out[static_cast<std::size_t>(3 - spatial + i)] = v[static_cast<std::size_t>(i)];
  return out;
}

}  // namespace

// sizes: the spatial sizes of the result, worked out by the caller.
static const Family reg{[](nb::module_& m) {
  m.def(
      "conv",
      [](const In& x, const In& w, nb::object b, nb::handle strides, nb::handle dilations, nb::handle begins,
          Index groups,
         nb::handle sizes, bool transposed, nb::handle out) {
        static const ConvTable& k = table<ConvTable>("opconform_conv");
        const int spatial = x.t.rank - 2;
        if (spatial < 1 || spatial > 3 || w.t.rank != x.t.rank)
          throw Error("conv: x " + text(x.t) + " and w " + text(w.t) + " need the same rank, 3 to 5");
        if (groups < 1 || x.t.dim(1) % groups || w.t.dim(0) % groups)
          throw Error("conv: " + std::to_string(groups) + " groups do not divide the channels of x " + text(x.t)
              + ", w " + text(w.t));
        const Index want = transposed ? x.t.dim(1) : x.t.dim(1) / groups, have = w.t.dim(transposed ? 0 : 1);
        if (want != have)
          throw Error("conv: w " + text(w.t) + " has " + std::to_string(have) + " input channels, expected "
              + std::to_string(want));
        Window v;
        v.stride = three(strides, spatial, 1, "conv: strides");
        v.dilation = three(dilations, spatial, 1, "conv: dilations");
        v.begin = three(begins, spatial, 0, "conv: pads");
        v.groups = groups;
        for (std::size_t i = 0; i < 3; ++i)
          if (v.stride[i] < 1 || v.dilation[i] < 1) throw Error("conv: strides and dilations must be at least 1");
        std::vector<Index> shape{x.t.dim(0), transposed ? w.t.dim(1) * groups : w.t.dim(0)};
        for (Index s : as_ints(sizes)) shape.push_back(s);
        if (static_cast<int>(shape.size()) != x.t.rank) throw Error("conv: sizes must name every spatial axis");
        In bias;
        const bool with_bias = !b.is_none();
        if (with_bias) {
          bias = as_array(b);
          if (bias.t.rank != 1 || bias.t.dim(0) != shape[1])
            throw Error("conv: bias " + text(bias.t) + ", expected [" + std::to_string(shape[1]) + "]");
        }
        const bool whole = is_int(x.t.dtype) && is_int(w.t.dtype);
        Out y = new_array(as_dtype(out, whole ? DType::i64 : DType::f64), shape);
        if (whole != is_int(y.t.dtype) || (with_bias && whole != is_int(bias.t.dtype)))
          throw Error("conv: integers give an integer result, floats a float one");
        const Tensor* bp = with_bias ? &bias.t : nullptr;
        run(y.t.size() * (transposed ? 16 : 4), [&] { (transposed ? k.conv_transpose : k.conv)(x, w, bp, v, y.t); });
        return release(std::move(y));
      },
      nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("strides"), nb::arg("dilations"), nb::arg("begins"),
      nb::arg("groups"), nb::arg("sizes"), nb::arg("transposed"), nb::arg("out") = nb::none());
}};

}  // namespace opconform::bind
