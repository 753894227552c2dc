// The draw engine of campaigns: a recorded generator whose only verb is int(lo, hi).
//
// Multiplicative, modulo 2**31 - 1, so that the Python twin in harness/gen/engine.py multiplies small numbers; both give
// the same choices for the same seed.

#include <vector>

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

struct Prng {
  std::uint64_t state;
  std::vector<std::int64_t> choices;

  explicit Prng(std::uint64_t seed) : state(mix(seed) % 2147483646u + 1) { choices.reserve(32); }

  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  std::int64_t draw(std::int64_t lo, std::int64_t hi) {
    state = state * 48271u % 2147483647u;
    const std::uint64_t span = hi < lo ? 0 : static_cast<std::uint64_t>(hi - lo) + 1;
    const auto v = static_cast<std::int64_t>(static_cast<std::uint64_t>(
        static_cast<unsigned __int128>(state) * span / 2147483647u));
    choices.push_back(v);
    return lo + v;
  }
};

const Family kPrngFamily{[](nb::module_& m) {
  nb::class_<Prng>(m, "Prng")
      .def(nb::init<std::uint64_t>(), nb::arg("seed"))
      .def("int", &Prng::draw, nb::arg("lo"), nb::arg("hi"))
      .def_prop_ro("choices", [](const Prng& p) {
        nb::list out;
        for (const std::int64_t c : p.choices) out.append(c);
        return out;
      });
}};

}  // namespace

}  // namespace opconform::bind
