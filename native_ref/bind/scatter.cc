#include <algorithm>

#include "native_ref/kernels/scatter/scatter.h"

#include "native_ref/bind/resolve.h"

namespace opconform::bind {

namespace {

const ScatterTable& scatter_kernels() {
  static const ScatterTable& k = table<ScatterTable>("opconform_scatter");
  return k;
}

using Places = std::vector<std::int64_t>;

nb::object written(const In& x, Combine how, const Places& place, Index inner, const In& updates) {
  if (updates.t.dtype != x.t.dtype)
    throw Error(std::string("scatter: ") + info(updates.t.dtype).name + " updates of " + info(x.t.dtype).name);
  const auto rows = static_cast<Index>(place.size());
  const DType d = x.t.dtype;
  if (d == DType::str) throw Error("scatter: no version for objects");
  const bool complex = info(d).kind == Kind::complex;
  if (complex && std::max(x.t.rank, updates.t.rank) >= kMaxRank) throw Error("scatter: too many axes");  // one more for the parts
  Out y = new_like(x, how == Combine::none || is_int(d) ? d : complex ? DType::c128 : DType::f64);
  if (how == Combine::none && inner > 0 && scatter_kernels().repeated(place.data(), rows, x.t.size()))
    throw nb::key_error("two updates of one place");
  run(updates.t.size(), [&] { scatter_kernels().write(how, x, place.data(), inner, updates, y.t); });
  return release(std::move(y));
}

nb::object elements(const In& x, const In& index, const In& updates, Index axis, int how, bool is_signed) {
  const int a = axis_of(axis, x.t.rank, "scatter_elements"), rank = x.t.rank;
  bool fits = index.t.rank == rank && updates.t.rank == rank;
  for (int i = 0; fits && i < rank; ++i)
    fits = index.t.dim(i) == updates.t.dim(i) && (i == a || index.t.dim(i) <= x.t.dim(i));
  if (!fits) throw Error("scatter_elements: indices " + text(index.t) + ", updates " + text(updates.t) + " into " + text(x.t));
  const Index extent[] = {x.t.dim(a)};
  Places place = resolved("scatter_elements", index, extent, is_signed);
  std::array<Index, kMaxRank> step{}, i{};
  for (int d = 0; d < rank; ++d) step[static_cast<std::size_t>(d)] = product(x, d + 1, rank);
  Index base = 0;
  for (std::int64_t& p : place) {
    p = base + p * step[static_cast<std::size_t>(a)];
    for (int d = rank - 1; d >= 0; --d) {
      const auto u = static_cast<std::size_t>(d);
      const Index s = d == a ? 0 : step[u];
      base += s;
      if (++i[u] < index.t.dim(d)) break;
      base -= s * index.t.dim(d);
      i[u] = 0;
    }
  }
  return written(x, static_cast<Combine>(how), place, 1, updates);
}

nb::object tuples(const In& x, const In& index, const In& updates, int how, bool is_signed) {
  if (index.t.rank < 1) throw Error("scatter_nd: indices without a tuple axis");
  const int last = index.t.rank - 1, tuple = static_cast<int>(index.t.dim(last));
  bool fits = tuple <= x.t.rank && updates.t.rank == last + x.t.rank - tuple;
  for (int i = 0; fits && i < updates.t.rank; ++i)
    fits = updates.t.dim(i) == (i < last ? index.t.dim(i) : x.t.dim(i - last + tuple));
  if (!fits) throw Error("scatter_nd: tuples " + text(index.t) + ", updates " + text(updates.t) + " into " + text(x.t));
  Places place(static_cast<std::size_t>(product(index, 0, last)));
  if (tuple > 0) {
    const std::span<const Index> extents{x.t.shape.data(), static_cast<std::size_t>(tuple)};
    const Places at = resolved("scatter_nd", index, extents, is_signed);
    for (std::size_t r = 0; r < place.size(); ++r)
      for (int t = 0; t < tuple; ++t)
        place[r] += at[r * static_cast<std::size_t>(tuple) + static_cast<std::size_t>(t)] * product(x, t + 1, x.t.rank);
  }
  return written(x, static_cast<Combine>(how), place, product(x, tuple, x.t.rank), updates);
}

nb::object slices(const In& x, const In& index, const In& updates, Index axis, int how, bool is_signed) {
  const int a = axis_of(axis, x.t.rank, "scatter"), r = index.t.rank;
  bool fits = updates.t.rank == x.t.rank - 1 + r;
  for (int i = 0; fits && i < updates.t.rank; ++i)
    fits = updates.t.dim(i) == (i < a ? x.t.dim(i) : i < a + r ? index.t.dim(i - a) : x.t.dim(i - r + 1));
  if (!fits) throw Error("scatter: indices " + text(index.t) + ", updates " + text(updates.t) + " into " + text(x.t));
  const Index extent[] = {x.t.dim(a)}, outer = product(x, 0, a), inner = product(x, a + 1, x.t.rank);
  const Places at = resolved("scatter", index, extent, is_signed);
  Places place;
  place.reserve(static_cast<std::size_t>(outer) * at.size());
  for (Index o = 0; o < outer; ++o)
    for (const std::int64_t i : at) place.push_back((o * extent[0] + i) * inner);
  return written(x, static_cast<Combine>(how), place, inner, updates);
}

}  // namespace

static const Family kScatterFamily{[](nb::module_& m) {
  m.def("scatter_elements", elements, nb::arg("x"), nb::arg("index"), nb::arg("updates"), nb::arg("axis"), nb::arg("how"),
        nb::arg("signed"));
  m.def("scatter_nd", tuples, nb::arg("x"), nb::arg("index"), nb::arg("updates"), nb::arg("how"), nb::arg("signed"));
  m.def("scatter", slices, nb::arg("x"), nb::arg("index"), nb::arg("updates"), nb::arg("axis"), nb::arg("how"),
        nb::arg("signed"));
}};

}  // namespace opconform::bind
