#include "native_ref/kernels/fill/fill.h"

#include <cmath>
#include <string_view>

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

struct Spec {
  Recipe recipe;
  double a = 0, b = 0;
};

constexpr std::array<std::string_view, 17> kNames{"small", "unit",    "wide", "special",  "ties", "branch", "iota", "ints",
                                                  "uniform", "bool", "positive", "prob", "full", "all",
                                                  "nonzero", "shift", "perm"};

double number(std::string_view& rest, std::string_view whole) {
  if (rest.empty() || rest.front() != ':')
    throw Error("fill: recipe " + std::string(whole) + ": expected another number");
  rest.remove_prefix(1);
  const std::string_view word = rest.substr(0, rest.find(':'));
  std::size_t used = 0;
  double v = 0;
  try {
    v = std::stod(std::string(word), &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != word.size() || !std::isfinite(v))
    throw Error("fill: recipe " + std::string(whole) + ": expected a number, got '" + std::string(word) + "'");
  rest.remove_prefix(word.size());
  return v;
}

Spec parse(std::string_view whole) {
  std::string_view rest = whole;
  const std::string_view name = rest.substr(0, rest.find(':'));
  rest.remove_prefix(name.size());
  Spec s{};
  if (name == "index" || name == "signed_index") {
    const double n = number(rest, whole);
    s = {Recipe::ints, name == "index" ? 0 : -n, n > 0 ? n - 1 : 0};
  } else {
    std::size_t k = 0;
    while (k < kNames.size() && kNames[k] != name) ++k;
    if (k == kNames.size()) {
      std::string known;
      for (std::string_view n : kNames) known.append(known.empty() ? "" : " ").append(n);
      throw Error("fill: unknown recipe '" + std::string(whole) + "', expected one of " + known + " index signed_index");
    }
    s.recipe = static_cast<Recipe>(k);
    if (s.recipe == Recipe::ints || s.recipe == Recipe::uniform) {
      s.a = number(rest, whole);
      s.b = number(rest, whole);
      if (s.b < s.a) throw Error("fill: recipe " + std::string(whole) + ": the upper end is below the lower");
    } else if (s.recipe == Recipe::perm) {
      s.a = number(rest, whole);
    }
  }
  if (!rest.empty()) throw Error("fill: recipe " + std::string(whole) + ": '" + std::string(rest) + "' left over");
  return s;
}

// What strings are filled with.
constexpr std::array<const char*, 16> kWords{"",        "a",   "b",  "ab",   "abc", "Hello", "hello",  "World",
                                             "tic tac", " x ", "12", "-3.5", "é",   "日本",  "a,b,,c", "ZZZ"};

nb::object words(const FillTable& k, std::uint64_t seed, const Ints& shape) {
  static const auto made = [] {
    std::array<PyObject*, kWords.size()> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = PyUnicode_FromString(kWords[i]);
    return out;
  }();
  const Out which = new_array(DType::i64, shape);
  k.fill(Recipe::ints, seed, which.t, 0, static_cast<double>(kWords.size() - 1));
  Out y = new_array(DType::str, shape);
  const auto* from = reinterpret_cast<const std::int64_t*>(which.t.data);
  auto** to = reinterpret_cast<PyObject**>(y.t.data);  // new, so that there is nothing to let go of
  for (Index i = 0; i < y.t.size(); ++i) {
    to[i] = made[static_cast<std::size_t>(from[i])];
    Py_INCREF(to[i]);
  }
  return release(std::move(y));
}

}  // namespace

static const Family kFillFamily{[](nb::module_& m) {
  m.def(
      "fill",
      [](const char* recipe, nb::int_ seed, nb::handle shape, nb::handle dtype) {
        static const FillTable& k = table<FillTable>("opconform_fill");
        const DType d = as_dtype(dtype);
        const std::uint64_t bits = PyLong_AsUnsignedLongLongMask(seed.ptr());
        const Ints extents(shape, "fill: shape");
        if (d == DType::str) return words(k, bits, extents);
        const Spec s = parse(recipe);
        Out y = new_array(d, extents);
        run(y.t.size(), [&] { k.fill(s.recipe, bits, y.t, s.a, s.b); });
        return release(std::move(y));
      },
      nb::arg("recipe"), nb::arg("seed"), nb::arg("shape"), nb::arg("dtype"));
}};

}  // namespace opconform::bind
