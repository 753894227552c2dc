#include "native_ref/kernels/rnn/rnn.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

// An optional f64 array of an exact shape.
const double* f64(nb::handle h, std::initializer_list<Index> shape, const char* what, std::vector<In>& keep) {
  if (h.is_none()) return nullptr;
  keep.push_back(as_array(h));
  const Tensor& t = keep.back().t;
  const std::vector<Index> want(shape);
  bool same = t.rank == static_cast<int>(want.size()) && t.dtype == DType::f64 && t.contiguous();
  for (int i = 0; same && i < t.rank; ++i) same = t.dim(i) == want[static_cast<std::size_t>(i)];
  if (!same) throw Error(std::string("rnn: ") + what + " is " + text(t) + ", expected contiguous f64 " + text(want));
  return reinterpret_cast<const double*>(t.data);
}

ActivationOf activation(nb::handle h) {
  const auto t = nb::cast<nb::tuple>(h);
  const int kind = nb::cast<int>(t[0]);
  if (kind < 0 || kind > static_cast<int>(Activation::softplus)) throw Error("rnn: no such activation");
  return {static_cast<Activation>(kind), nb::cast<double>(t[1]), nb::cast<double>(t[2])};
}

}  // namespace

// One direction.  Returns (y [t, b, h], h_last [b, h], c_last [b, h] or None, cells [t, b, h] or None).
static const Family kRnnFamily{[](nb::module_& m) {
  m.def(
      "rnn",
      [](int cell, const In& x, const In& w, const In& r, nb::handle bias_w, nb::handle bias_r, nb::handle peephole,
         nb::handle lengths, nb::handle h0, nb::handle c0, nb::handle activations, double clip, bool coupled,
             bool reset_after,
         bool backward) {
        static const RnnTable& k = table<RnnTable>("opconform_rnn");
        RnnCall c;
        if (cell < 0 || cell > 2) throw Error("rnn: cell must be 0, 1 or 2");
        c.cell = static_cast<Cell>(cell);
        if (x.t.rank != 3 || r.t.rank != 2) throw Error("rnn: x " + text(x.t) + " needs 3 axes, r " + text(r.t)
            + " two");
        const Index gates = cell == 2 ? 4 : cell == 1 ? 3 : 1;
        c.t = x.t.dim(0);
        c.b = x.t.dim(1);
        c.i = x.t.dim(2);
        c.h = r.t.dim(1);
        const Index g = gates * c.h;
        std::vector<In> keep;
        keep.reserve(10);
        c.x = f64(x.owner, {c.t, c.b, c.i}, "x", keep);
        c.w = f64(w.owner, {g, c.i}, "w", keep);
        c.r = f64(r.owner, {g, c.h}, "r", keep);
        c.bias_w = f64(bias_w, {g}, "bias_w", keep);
        c.bias_r = f64(bias_r, {g}, "bias_r", keep);
        c.peephole = f64(peephole, {3 * c.h}, "peephole", keep);
        c.h0 = f64(h0, {c.b, c.h}, "h0", keep);
        c.c0 = f64(c0, {c.b, c.h}, "c0", keep);
        std::vector<Index> steps;
        if (!lengths.is_none()) {
          steps = as_ints(lengths);
          if (static_cast<Index>(steps.size()) != c.b) throw Error("rnn: one length per batch entry");
          for (Index n : steps)
            if (n < 0 || n > c.t) throw Error("rnn: length " + std::to_string(n) + " of " + std::to_string(c.t)
                + " steps");
          c.lengths = steps.data();
        }
        const auto list = nb::cast<nb::tuple>(activations);
        c.f = activation(list[0]);
        if (cell > 0) c.g = activation(list[1]);
        if (cell > 1) c.hidden = activation(list[2]);
        c.clip = clip;
        c.coupled = coupled;
        c.reset_after = reset_after;
        c.backward = backward;
        const Index sequence[] = {c.t, c.b, c.h}, one[] = {c.b, c.h};
        Out y = new_array(DType::f64, sequence), last = new_array(DType::f64, one);
        c.y = reinterpret_cast<double*>(y.t.data);
        c.y_step = c.b * c.h;
        c.h_last = reinterpret_cast<double*>(last.t.data);
        nb::object cells = nb::none(), c_last = nb::none();
        if (cell == 2) {
          Out a = new_array(DType::f64, sequence), b = new_array(DType::f64, one);
          c.cells = reinterpret_cast<double*>(a.t.data);
          c.c_last = reinterpret_cast<double*>(b.t.data);
          cells = release(std::move(a));
          c_last = release(std::move(b));
        }
        run(c.t * c.b * g * (c.i + c.h), [&] { k.rnn(c); });
        return nb::make_tuple(release(std::move(y)), release(std::move(last)), c_last, cells);
      },
      nb::arg("cell"), nb::arg("x"), nb::arg("w"), nb::arg("r"), nb::arg("bias_w").none(), nb::arg("bias_r").none(),
      nb::arg("peephole").none(), nb::arg("lengths").none(), nb::arg("h0").none(), nb::arg("c0").none(),
          nb::arg("activations"),
      nb::arg("clip"), nb::arg("coupled"), nb::arg("reset_after"), nb::arg("backward"));
}};

}  // namespace opconform::bind
