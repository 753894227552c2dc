#include "native_ref/kernels/conv/conv.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

// One number per spatial axis, at the end of three; None: `fill` everywhere.
std::array<Index, 3> three(nb::handle h, int spatial, Index fill, const char* what) {
  std::array<Index, 3> out{fill, fill, fill};
  if (h.is_none()) return out;
  const Ints v(h, what);
  if (v.n == 0) return out;
  if (v.n < spatial)
    throw Error(std::string(what) + ": expected " + std::to_string(spatial) + " numbers, got " + std::to_string(v.n));
  for (int i = 0; i < spatial; ++i) out[static_cast<std::size_t>(3 - spatial + i)] = v[i];
  return out;
}

// begins then ends
void read_pads(nb::handle h, int spatial, std::array<Index, 3>& begin, std::array<Index, 3>& end) {
  if (h.is_none()) return;
  const Ints v(h, "conv: pads");
  if (v.n == 0) return;
  if (v.n != 2 * spatial)
    throw Error("conv: pads: expected " + std::to_string(2 * spatial) + " numbers, got " + std::to_string(v.n));
  for (int i = 0; i < spatial; ++i) {
    begin[static_cast<std::size_t>(3 - spatial + i)] = v[i];
    end[static_cast<std::size_t>(3 - spatial + i)] = v[spatial + i];
  }
}

// Output extents of a convolution, or of a transposed one; never negative.
void add_sizes(Ints& shape, const Tensor& x, const Tensor& w, const Window& v, const std::array<Index, 3>& end,
               const std::array<Index, 3>& more, bool transposed) {
  const int spatial = x.rank - 2;
  for (int i = 0; i < spatial; ++i) {
    const auto a = static_cast<std::size_t>(3 - spatial + i);
    const Index s = x.dim(2 + i), reach = v.dilation[a] * (w.dim(2 + i) - 1), pads = v.begin[a] + end[a];
    const Index span = s + pads - reach - 1;
    const Index n = transposed ? v.stride[a] * (s - 1) + more[a] + reach + 1 - pads
                    : span < 0 ? 0
                               : span / v.stride[a] + 1;
    shape.push_back(n < 0 ? 0 : n);
  }
}

}  // namespace

// sizes: the spatial extents of the result where the other arguments do not give them; strides, dilations, pads and
// output_padding may be None.
static const Family kConvFamily{[](nb::module_& m) {
  m.def(
      "conv",
      [](const In& x, const In& w, nb::object b, nb::handle strides, nb::handle dilations, nb::handle pads,
         Index groups, nb::handle output_padding, nb::handle sizes, bool transposed, nb::handle out) {
        static const ConvTable& k = table<ConvTable>("opconform_conv");
        hold_numbers("conv", {x.t.dtype, w.t.dtype});
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
        std::array<Index, 3> end{};
        read_pads(pads, spatial, v.begin, end);
        v.groups = groups;
        for (std::size_t i = 0; i < 3; ++i)
          if (v.stride[i] < 1 || v.dilation[i] < 1) throw Error("conv: strides and dilations must be at least 1");
        Ints shape;
        shape.push_back(x.t.dim(0));
        shape.push_back(transposed ? w.t.dim(1) * groups : w.t.dim(0));
        if (sizes.is_none()) {
          add_sizes(shape, x, w, v, end, three(output_padding, spatial, 0, "conv: output_padding"), transposed);
        } else {
          const Ints given(sizes, "conv: sizes");
          if (given.n != spatial) throw Error("conv: sizes must name every spatial axis");
          for (int i = 0; i < spatial; ++i) shape.push_back(given[i]);
        }
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
      nb::arg("x"), nb::arg("w"), nb::arg("b").none(), nb::arg("strides").none(), nb::arg("dilations").none(),
      nb::arg("pads").none(), nb::arg("groups"), nb::arg("output_padding").none(), nb::arg("sizes").none(), nb::arg("transposed"), nb::arg("out") = nb::none());
}};

}  // namespace opconform::bind
