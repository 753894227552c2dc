#include "native_ref/kernels/pool/pool.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {
constexpr Index kFar = Index{1} << 40;  // pads beyond it are refused, so that no position overflows
}

// pads: begins then ends; extra_end widens the sizes alone.  None: ones, or zeros; sizes then follow from the rest.
static const Family kPoolFamily{[](nb::module_& m) {
  m.def(
      "pool",
      [](int kind, const In& x, nb::handle kernel, nb::handle strides, nb::handle dilations, nb::handle pads,
         nb::handle extra_end, nb::handle sizes, double p, bool positions, nb::handle out) -> nb::object {
        static const PoolTable& k = table<PoolTable>("opconform_pool");
        hold_numbers("pool", {x.t.dtype});
        const int spatial = x.t.rank - 2;
        if (spatial < 1 || spatial > 3) throw Error("pool: x " + text(x.t) + ", expected rank 3 to 5");
        PoolWindow v;
        v.p = p;
        const auto fill = [&](std::array<Index, 3>& to, nb::handle h, Index least, const char* what) {
          if (h.is_none()) return;
          const Ints from(h, what);
          if (from.n != spatial)
            throw Error(std::string("pool: ") + what + " has " + std::to_string(from.n) + " numbers, expected " +
                        std::to_string(spatial));
          for (int i = 0; i < from.n; ++i) {
            if (from[i] < least) throw Error(std::string("pool: ") + what + " below " + std::to_string(least));
            to[static_cast<std::size_t>(3 - from.n + i)] = from[i];
          }
        };
        fill(v.kernel, kernel, 1, "kernel");
        fill(v.stride, strides, 1, "strides");
        fill(v.dilation, dilations, 1, "dilations");
        std::array<Index, 3> extra{};
        fill(extra, extra_end, -kFar, "extra_end");
        if (!pads.is_none()) {
          const Ints p2(pads, "pool: pads");
          if (p2.n != 2 * spatial)
            throw Error("pool: pads has " + std::to_string(p2.n) + " numbers, expected " + std::to_string(2 * spatial));
          for (int i = 0; i < p2.n; ++i) {
            if (p2[i] < -kFar) throw Error("pool: pads below " + std::to_string(-kFar));
            (i < spatial ? v.begin : v.end)[static_cast<std::size_t>(3 - spatial + i % spatial)] = p2[i];
          }
        }
        Ints shape;
        shape.push_back(x.t.dim(0));
        shape.push_back(x.t.dim(1));
        if (sizes.is_none()) {
          for (int i = 0; i < spatial; ++i) {
            const auto a = static_cast<std::size_t>(3 - spatial + i);
            const Index span = x.t.dim(2 + i) + v.begin[a] + v.end[a] + extra[a] - v.dilation[a] * (v.kernel[a] - 1) - 1;
            shape.push_back(span < 0 ? 0 : span / v.stride[a] + 1);
          }
        } else {
          const Ints given(sizes, "pool: sizes");
          if (given.n != spatial) throw Error("pool: sizes must name every spatial axis");
          for (int i = 0; i < spatial; ++i) shape.push_back(given[i]);
        }
        Out y = new_array(as_dtype(out, kind == 0 ? x.t.dtype : DType::f64), shape);
        if (!positions) {
          run(y.t.size() * 8, [&] { k.pool(static_cast<Pooling>(kind), x, v, y.t, nullptr); });
          return release(std::move(y));
        }
        Out at = new_array(DType::i64, shape);
        run(y.t.size() * 8, [&] { k.pool(static_cast<Pooling>(kind), x, v, y.t, &at.t); });
        return nb::make_tuple(release(std::move(y)), release(std::move(at)));
      },
      nb::arg("kind"), nb::arg("x"), nb::arg("kernel"), nb::arg("strides").none(), nb::arg("dilations").none(),
      nb::arg("pads").none(), nb::arg("extra_end").none(), nb::arg("sizes").none(), nb::arg("p"), nb::arg("positions"), nb::arg("out") = nb::none());
}};

}  // namespace opconform::bind
