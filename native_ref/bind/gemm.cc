#include "native_ref/kernels/gemm/matmul.h"

#include "native_ref/bind/array.h"

namespace opconform::bind {

static const Family kGemmFamily{[](nb::module_& m) {
  m.def(
      "matmul",
      [](const In& a, const In& b, nb::handle out) {
        static const GemmTable& k = table<GemmTable>("opconform_gemm");
        hold_numbers("matmul", {a.t.dtype, b.t.dtype});
        Tensor x = a.t, z = b.t;
        if (x.rank == 0 || z.rank == 0) throw Error("matmul: operands need at least one axis");
        const bool row = x.rank == 1, column = z.rank == 1;
        const auto set = [](Tensor& t, int i, Index n, Index step) {
          t.shape[static_cast<std::size_t>(i)] = n;
          t.stride[static_cast<std::size_t>(i)] = step;
        };
        if (row) {
          set(x, 1, x.dim(0), x.step(0));
          set(x, 0, 1, 0);
          x.rank = 2;
        }
        if (column) {
          set(z, 1, 1, 0);
          z.rank = 2;
        }
        const Index p = x.dim(x.rank - 2), q = x.dim(x.rank - 1), r = z.dim(z.rank - 1);
        if (z.dim(z.rank - 2) != q)
          throw Error("matmul: shapes " + text(a.t) + " and " + text(b.t) + ": " + std::to_string(q)
              + " columns against " +
                      std::to_string(z.dim(z.rank - 2)) + " rows");
        Tensor lead_x = x, lead_z = z, lead;
        lead_x.rank -= 2;
        lead_z.rank -= 2;
        const Tensor* both[] = {&lead_x, &lead_z};
        broadcast(both, lead, "matmul");
        const auto grow = [&](const Tensor& t, const Tensor& head) {
          Tensor g = expand(head, lead);
          g.rank = lead.rank + 2;
          set(g, lead.rank, t.dim(t.rank - 2), t.step(t.rank - 2));
          set(g, lead.rank + 1, t.dim(t.rank - 1), t.step(t.rank - 1));
          return g;
        };
        const Tensor ga = grow(x, lead_x), gb = grow(z, lead_z);
        Ints shape, seen;
        for (int i = 0; i < lead.rank; ++i) shape.push_back(lead.dim(i));
        seen = shape;
        shape.push_back(p);
        shape.push_back(r);
        if (!row) seen.push_back(p);
        if (!column) seen.push_back(r);
        const bool whole = is_int(x.dtype) && is_int(z.dtype);
        const bool uns = !is_sint(x.dtype) && !is_sint(z.dtype);
        Out y = new_array(as_dtype(out, !whole ? DType::f64 : uns && (x.dtype == DType::u64
            || z.dtype == DType::u64) ? DType::u64 : DType::i64), seen);
        if (whole != is_int(y.t.dtype)) throw Error("matmul: integers give an integer result, floats a float one");
        Tensor full = y.t;
        full.rank = shape.n;
        for (int i = 0; i < shape.n; ++i) full.shape[static_cast<std::size_t>(i)] = shape[i];
        run(full.size() * q, [&] { k.matmul(ga, gb, full); });
        return release(std::move(y));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("out") = nb::none());
}};

}  // namespace opconform::bind
