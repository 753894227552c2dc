#include "native_ref/kernels/pool/pool.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

static const Family reg{[](nb::module_& m) {
  m.def(
      "pool",
      [](int kind, const In& x, nb::handle kernel, nb::handle strides, nb::handle dilations, nb::handle begins,
          nb::handle ends,
         nb::handle sizes, double p, bool positions, nb::handle out) -> nb::object {
        static const PoolTable& k = table<PoolTable>("opconform_pool");
        const int spatial = x.t.rank - 2;
        if (spatial < 1 || spatial > 3) throw Error("pool: x " + text(x.t) + ", expected rank 3 to 5");
        PoolWindow v;
        v.p = p;
        const auto fill = [&](std::array<Index, 3>& to, nb::handle h, Index least, const char* what) {
          const std::vector<Index> from = as_ints(h);
          if (static_cast<int>(from.size()) != spatial)
            throw Error(std::string("pool: ") + what + " has " + std::to_string(from.size()) + " numbers, expected " +
                        std::to_string(spatial));
          for (std::size_t i = 0; i < from.size(); ++i) {
            if (from[i] < least) throw Error(std::string("pool: ") + what + " below " + std::to_string(least));
            to[3 - from.size() + i] = from[i];
          }
        };
        fill(v.kernel, kernel, 1, "kernel");
        fill(v.stride, strides, 1, "strides");
        fill(v.dilation, dilations, 1, "dilations");
        fill(v.begin, begins, -(Index{1} << 40), "begins");
        fill(v.end, ends, -(Index{1} << 40), "ends");
        std::vector<Index> shape{x.t.dim(0), x.t.dim(1)};
        for (Index s : as_ints(sizes)) shape.push_back(s);
        if (static_cast<int>(shape.size()) != x.t.rank) throw Error("pool: sizes must name every spatial axis");
        Out y = new_array(as_dtype(out, kind == 0 ? x.t.dtype : DType::f64), shape);
        if (!positions) {
          run(y.t.size() * 8, [&] { k.pool(static_cast<Pooling>(kind), x, v, y.t, nullptr); });
          return release(std::move(y));
        }
        Out at = new_array(DType::i64, shape);
        run(y.t.size() * 8, [&] { k.pool(static_cast<Pooling>(kind), x, v, y.t, &at.t); });
        return nb::make_tuple(release(std::move(y)), release(std::move(at)));
      },
      nb::arg("kind"), nb::arg("x"), nb::arg("kernel"), nb::arg("strides"), nb::arg("dilations"), nb::arg("begins"),
      nb::arg("ends"), nb::arg("sizes"), nb::arg("p"), nb::arg("positions"), nb::arg("out") = nb::none());
}};

}  // namespace opconform::bind
