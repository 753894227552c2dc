// What instances are drawn with: engines that give recorded choices, and the verbs that generators are written in.
//
// An engine has one verb, int(lo, hi).  Those of campaigns are here; any other Python object with that method serves too
// (Hypothesis, an engine of a test).

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

using Int = std::int64_t;

struct Engine {
  virtual ~Engine() = default;
  virtual Int draw(Int lo, Int hi) = 0;
  virtual Int extent(Int drawn, Int, Int) { return drawn; }
};

nb::list listed(const std::vector<Int>& v) {
  const nb::list out = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(v.size())));
  for (std::size_t i = 0; i < v.size(); ++i)
    PyList_SetItem(out.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(v[i]));
  return out;
}

std::vector<Int> numbers(nb::handle choices) {
  std::vector<Int> out;
  for (const nb::handle c : choices) out.push_back(nb::cast<Int>(c));
  return out;
}

// Multiplicative, modulo 2**31 - 1, so that the Python twin in harness/generate/draw_engines.py multiplies small numbers; both give
// the same choices for the same seed.
struct Prng final : Engine {
  std::uint64_t state;
  std::vector<Int> choices;

  explicit Prng(std::uint64_t seed) : state(mix(seed) % 2147483646u + 1) { choices.reserve(32); }

  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  Int draw(Int lo, Int hi) override {
    state = state * 48271u % 2147483647u;
    const std::uint64_t span = hi < lo ? 0 : static_cast<std::uint64_t>(hi - lo) + 1;
    const auto v = static_cast<Int>(
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(state) * span / 2147483647u));
    choices.push_back(v);
    return lo + v;
  }
};

struct Replay : Engine {
  std::vector<Int> choices, used;
  std::size_t at = 0;

  explicit Replay(nb::handle given) : choices(numbers(given)) {}

  Int draw(Int lo, Int hi) override {
    Int v = at < choices.size() ? choices[at] : 0;
    ++at;
    v = std::max<Int>(0, std::min(v, hi - lo));  // of an empty range the lower end, as when drawn
    used.push_back(v);
    return lo + v;
  }
};

struct Vary final : Replay {
  Prng fresh;

  Vary(nb::handle given, std::uint64_t seed) : Replay(given), fresh(seed) {}

  Int extent(Int drawn, Int lo, Int hi) override { return fresh.draw(0, 1) ? fresh.draw(lo, hi) : drawn; }
};

// 1 and 2 are the ones bugs hide in, primes keep axes apart
constexpr std::array<Int, 20> kExtents{1, 2, 3, 2, 3, 4, 5, 1, 7, 3, 2, 5, 4, 6, 8, 11, 13, 2, 3, 1};
// beside vector and block widths, the limits of 8 bits, and where an f16 sum of ones ends
constexpr std::array<Int, 20> kLong{16,  17,  32,  33,  64,  65,  127, 128, 129, 255,
                                    256, 257, 300, 512, 513, 31,  63,  1000, 2049, 4096};
constexpr Int kLongBudget = 4096;
constexpr std::array<Int, 12> kRanks{1, 2, 3, 4, 2, 3, 2, 4, 1, 0, 5, 6};

// The remainder that Python's % gives.
Int remainder(Int a, Int b) {
  if (b == 0) {
    PyErr_SetString(PyExc_ZeroDivisionError, "an extent of an empty range");
    throw nb::python_error();
  }
  const Int r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

Py_ssize_t length(nb::handle h) {
  const Py_ssize_t n = PyObject_Size(h.ptr());
  if (n < 0) throw nb::python_error();
  return n;
}

nb::object from(nb::handle sequence, Int first) {
  return nb::steal(nb::detail::raise_if_null(PySequence_GetSlice(sequence.ptr(), first, PY_SSIZE_T_MAX)));
}

// The documentation of the verbs is that of harness.generate.draw.Draw.
struct Draw {
  nb::object engine, version, opset, fixed, types;
  Int max_rank, budget, min_rank;
  bool allow_empty, breaking = false, empty = false;
  bool lengthy = false, deep = false;  // one axis is long, or a rank is high
  Engine* own = nullptr;  // the engine where it is one of the above, kept alive by `engine`
  nb::object ask;         // else its method

  Draw(nb::object e, nb::object v, nb::object o, nb::object f, nb::object t, Int most, bool may_be_empty, Int room,
       Int least)
      : engine(std::move(e)), version(std::move(v)), opset(std::move(o)), fixed(std::move(f)), types(std::move(t)),
        max_rank(most), budget(room), min_rank(least), allow_empty(may_be_empty) {
    if (!nb::try_cast(engine, own)) ask = engine.attr("int");
    const Int kind = allow_empty ? integer(0, 19) : 0;  // one instance in twenty each
    empty = kind == 19;
    lengthy = kind == 18;
    deep = kind == 17;
  }

  Int integer(Int lo, Int hi) { return own ? own->draw(lo, hi) : nb::cast<Int>(ask(lo, hi)); }
  bool boolean() { return integer(0, 1) == 1; }
  bool chance(Int n) { return integer(0, n - 1) == n - 1; }
  Int varied(Int drawn, Int lo, Int hi) { return own ? own->extent(drawn, lo, hi) : drawn; }

  nb::object pick(nb::handle options) { return options[nb::int_(integer(0, length(options) - 1))]; }

  // Takes the element out of the list.
  nb::object taken(const nb::list& pool) {
    const Int i = integer(0, static_cast<Int>(pool.size()) - 1);
    const nb::object one = nb::steal(nb::detail::raise_if_null(PySequence_GetItem(pool.ptr(), i)));
    if (PySequence_DelItem(pool.ptr(), i) < 0) throw nb::python_error();
    return one;
  }

  nb::list subset(nb::handle options, Int least) {
    const nb::list pool(options);
    nb::list out;
    for (Int n = integer(least, static_cast<Int>(pool.size())); n > 0; --n) out.append(taken(pool));
    return out;
  }

  nb::list shuffle(nb::handle options) {
    const nb::list pool(options);
    nb::list out;
    while (pool.size() > 0) out.append(taken(pool));
    return out;
  }

  Int dim(Int lo, Int hi) {
    if (empty && lo == 0 && integer(0, 3) == 3) return 0;
    const Int last = static_cast<Int>(kExtents.size()) - 1;
    const Int n = kExtents[static_cast<std::size_t>(varied(integer(0, last), 0, last))];
    if (lo <= n && n <= hi) return n;
    return lo > 0 ? lo + remainder(n, hi - lo + 1) : 1 + remainder(n, hi);
  }

  Int extent(Int lo, Int hi) { return varied(integer(lo, hi), lo, hi); }

  Int rank(Int lo, std::optional<Int> hi) {
    const Int top = hi ? std::min(*hi, max_rank) : max_rank;
    if (deep && lo <= top && top > 4) return integer(std::max(lo, top - 2), top);
    const Int r = kRanks[static_cast<std::size_t>(integer(0, static_cast<Int>(kRanks.size()) - 1))];
    return lo <= r && r <= top ? r : integer(lo, top);
  }

  nb::object part(Int least, std::optional<Int> most, Int lo) {
    std::vector<Int> out;
    Int room = budget;
    Int k = rank(least, most);
    if (lengthy && k > 0 && boolean()) {
      lengthy = false;  // one tensor of the instance: what others are made from it is long enough
      return lengthened(k, lo);
    }
    for (; k > 0; --k) {
      const Int n = std::min(dim(lo, 13), std::max<Int>(1, room));
      out.push_back(n);
      room /= std::max<Int>(n, 1);
    }
    return tuple_of(out);
  }

  // A shape of rank k with one long axis; the others have what room is left.
  nb::object lengthened(Int k, Int lo) {
    std::vector<Int> out;
    const Int at = integer(0, k - 1), last = static_cast<Int>(kLong.size()) - 1;
    const Int most = kLong[static_cast<std::size_t>(varied(integer(0, last), 0, last))];
    Int room = std::max(budget, kLongBudget) / most;
    for (Int i = 0; i < k; ++i) {
      const Int n = i == at ? most : std::min(dim(lo, 13), std::max<Int>(1, room));
      out.push_back(n);
      if (i != at) room /= std::max<Int>(n, 1);
    }
    return tuple_of(out);
  }

  nb::object shape(Int least, std::optional<Int> most, Int lo) { return part(std::max(least, min_rank), most, lo); }

  nb::object broadcast_from(nb::handle full) {
    const Int kind = integer(0, 5);
    if (kind < 3) return nb::borrow(full);
    const Int droppable = std::max<Int>(0, length(full) - min_rank);
    if (kind == 3) return from(full, integer(0, droppable));
    std::vector<Int> out;
    for (const nb::handle n : full) out.push_back(integer(0, 2) == 2 ? 1 : nb::cast<Int>(n));
    if (kind == 5) out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(integer(0, droppable)));
    return tuple_of(out);
  }

  Int axis(Int rank) {
    const Int a = integer(0, rank - 1);
    return integer(0, 2) == 2 ? a - rank : a;
  }

  nb::object dtype(nb::handle slot) { return version.attr("slot_dtype")(slot, types); }

  static nb::object tuple_of(const std::vector<Int>& v) {
    nb::object out = nb::steal(nb::detail::raise_if_null(PyTuple_New(static_cast<Py_ssize_t>(v.size()))));
    for (std::size_t i = 0; i < v.size(); ++i)
      PyTuple_SetItem(out.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(v[i]));
    return out;
  }
};

const Family kDrawFamily{[](nb::module_& m) {
  nb::class_<Engine>(m, "Engine").def("int", &Engine::draw, nb::arg("lo"), nb::arg("hi"));
  nb::class_<Prng, Engine>(m, "Prng")
      .def(nb::init<std::uint64_t>(), nb::arg("seed"))
      .def_prop_ro("choices", [](const Prng& p) { return listed(p.choices); });
  nb::class_<Replay, Engine>(m, "Replay")
      .def(nb::init<nb::handle>(), nb::arg("choices"))
      .def_prop_ro("used", [](const Replay& r) { return listed(r.used); });
  nb::class_<Vary, Replay>(m, "Vary")
      .def(nb::init<nb::handle, std::uint64_t>(), nb::arg("choices"), nb::arg("seed"));
  const auto no_rank = nb::arg("max_rank").none() = nb::none();
  nb::class_<Draw>(m, "Draw")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, Int, bool, Int, Int>(),
           nb::arg("engine"), nb::arg("version"), nb::arg("opset"), nb::arg("fixed"), nb::arg("types"),
           nb::arg("max_rank") = 6, nb::arg("allow_empty") = true, nb::arg("budget") = 1024, nb::arg("min_rank") = 0)
      .def_ro("engine", &Draw::engine)
      .def_ro("version", &Draw::version)
      .def_ro("opset", &Draw::opset)
      .def_rw("fixed", &Draw::fixed)
      .def_ro("types", &Draw::types)
      .def_ro("max_rank", &Draw::max_rank)
      .def_ro("min_rank", &Draw::min_rank)
      .def_ro("allow_empty", &Draw::allow_empty)
      .def_ro("budget", &Draw::budget)
      .def_rw("breaking", &Draw::breaking)
      .def_ro("empty", &Draw::empty)
      .def("int", &Draw::integer, nb::arg("lo"), nb::arg("hi"))
      .def("bool", &Draw::boolean)
      .def("chance", &Draw::chance, nb::arg("n"))
      .def("pick", &Draw::pick, nb::arg("options"))
      .def("subset", &Draw::subset, nb::arg("options"), nb::arg("least") = 0)
      .def("shuffle", &Draw::shuffle, nb::arg("options"))
      .def("dim", &Draw::dim, nb::arg("lo") = 0, nb::arg("hi") = 13)
      .def("extent", &Draw::extent, nb::arg("lo"), nb::arg("hi"))
      .def("rank", &Draw::rank, nb::arg("lo") = 0, nb::arg("hi").none() = nb::none())
      .def("shape", &Draw::shape, nb::arg("min_rank") = 0, no_rank, nb::arg("lo") = 0)
      .def("part", &Draw::part, nb::arg("min_rank") = 0, no_rank, nb::arg("lo") = 0)
      .def("broadcast_from", &Draw::broadcast_from, nb::arg("full"))
      .def("axis", &Draw::axis, nb::arg("rank"))
      .def("dtype", &Draw::dtype, nb::arg("slot"));
}};

}  // namespace

}  // namespace opconform::bind
