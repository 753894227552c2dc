// FlatBuffers from nested dicts, after a description of the tables (see suites/tflite/flatbuffers.py for both forms).
//
// The writer goes forward: a table is written before what it points to, offsets are patched afterwards.  Equal vtables
// are shared.  Little-endian hosts only, like the rest of the extension.

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "native_ref/bind/array.h"

namespace opconform::bind {

namespace {

// The widest alignment of a vector: the runtime hands out pointers into the buffers of a model.
constexpr std::size_t kBufferAlign = 16;

struct Scalar {
  char code;  // as in Python's struct, 0 for none
  int width;
};

Scalar scalar_of(std::string_view kind) {
  static constexpr std::pair<std::string_view, Scalar> kAll[] = {
      {"bool", {'?', 1}}, {"i8", {'b', 1}},  {"u8", {'B', 1}},  {"i16", {'h', 2}}, {"u16", {'H', 2}}, {"i32", {'i', 4}},
      {"u32", {'I', 4}},  {"i64", {'q', 8}}, {"u64", {'Q', 8}}, {"f32", {'f', 4}}, {"f64", {'d', 8}}};
  for (const auto& [name, scalar] : kAll)
    if (name == kind) return scalar;
  return {0, 4};
}

// What an offset points to.
struct Ref {
  enum What { kText, kTable, kUnion, kNumbers, kOffsets } what = kText;
  int target = -1;  // number of a table or a union; of the Ref of an element
  Scalar element{0, 4};
  std::size_t align = 4;
};

struct Field {
  std::string name;
  int slot;
  Scalar scalar;
  int ref = -1;    // where scalar.code is 0
  nb::object tag;  // of a union: the name of the field that says which table it holds
};

struct Table {
  std::string name;
  std::vector<Field> fields;
  std::unordered_map<std::string, int> by_name;
  std::unordered_map<PyObject*, int> by_key;  // keys met before; `kept` holds them, so that no address is used again
  std::vector<nb::object> kept;
};

class Bytes {
 public:
  std::string data;
  std::vector<std::size_t> vtables;  // where they lie: a few dozen at most

  std::size_t size() const { return data.size(); }
  void pad(std::size_t align, std::size_t before = 0) { data.append(-(size() + before) & (align - 1), '\0'); }
  template <class T>
  void put(T v) {
    data.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  // Where this vtable lies, which starts with its length.
  std::size_t vtable(const std::string& v) {
    for (const std::size_t at : vtables)
      if (data.compare(at, v.size(), v) == 0) return at;
    pad(2);
    vtables.push_back(size());
    data += v;
    return vtables.back();
  }
  // The offset at `back` points to here.
  void point(std::size_t back) {
    const auto distance = static_cast<std::uint32_t>(size() - back);
    std::memcpy(data.data() + back, &distance, sizeof distance);
  }
};

class FlatBuffers {
 public:
  FlatBuffers(const FlatBuffers&) = delete;
  FlatBuffers& operator=(const FlatBuffers&) = delete;
  FlatBuffers(nb::dict tables, nb::dict unions) {
    int n = 0;
    for (auto [name, rows] : tables) numbers_[nb::cast<std::string>(name)] = n++;
    tables_.resize(static_cast<std::size_t>(n));
    for (auto [name, members] : unions) {
      union_numbers_[nb::cast<std::string>(name)] = static_cast<int>(unions_.size());
      auto& known = unions_.emplace_back();
      for (auto [number, table] : nb::cast<nb::dict>(members))
        known.emplace_back(nb::cast<long long>(nb::int_(number)), numbers_.at(nb::cast<std::string>(table)));
    }
    n = 0;
    for (auto [name, rows] : tables) {
      Table& t = tables_[static_cast<std::size_t>(n++)];
      t.name = nb::cast<std::string>(name);
      for (nb::handle row : nb::cast<nb::list>(rows)) {
        const auto kind = nb::cast<std::string>(row[2]);
        Field f{nb::cast<std::string>(row[1]), nb::cast<int>(row[0]), scalar_of(kind), -1, {}};
        if (!f.scalar.code) {
          const bool buffer = t.name == "Buffer" && f.name == "data";
          f.ref = ref_of(kind, buffer ? kBufferAlign : 0);
          if (kind[0] == '|') f.tag = nb::str((f.name + "_type").c_str());
        }
        t.by_name[f.name] = static_cast<int>(t.fields.size());
        t.fields.push_back(std::move(f));
      }
    }
  }

  nb::bytes encode(const std::string& table, nb::dict value, const std::string& identifier) {
    const auto at = numbers_.find(table);
    if (at == numbers_.end()) throw nb::key_error(("no table " + table).c_str());
    if (identifier.size() != 4) throw nb::value_error("a file identifier has four characters");
    Bytes out;
    out.data.reserve(4096);
    out.data.assign(4, '\0');
    out.data += identifier;
    write_table(out, at->second, value, 0);
    return nb::bytes(out.data.data(), out.size());
  }

 private:
  int ref_of(const std::string& kind, std::size_t align) {
    Ref r;
    if (kind[0] == '*') {
      r.what = Ref::kTable;
      r.target = numbers_.at(kind.substr(1));
    } else if (kind[0] == '|') {
      r.what = Ref::kUnion;
      r.target = union_numbers_.at(kind.substr(1));
    } else if (kind[0] == '[') {
      const std::string element = kind.substr(1, kind.size() - 2);
      r.element = scalar_of(element);
      r.what = r.element.code ? Ref::kNumbers : Ref::kOffsets;
      if (!r.element.code) r.target = ref_of(element, 0);
      r.align = std::max<std::size_t>(align ? align : static_cast<std::size_t>(r.element.width), 4);
    }
    refs_.push_back(r);
    return static_cast<int>(refs_.size()) - 1;
  }

  // Number of the field that a key names.
  int field_of(Table& t, PyObject* key) {
    const auto known = t.by_key.find(key);
    if (known != t.by_key.end()) return known->second;
    const auto name = nb::cast<std::string>(nb::handle(key));
    const auto hit = t.by_name.find(name);
    if (hit == t.by_name.end()) {
      std::string all;
      for (const Field& f : t.fields) all += (all.empty() ? "" : ", ") + f.name;
      throw nb::key_error((t.name + " has no field '" + name + "', only " + all).c_str());
    }
    if (t.kept.size() < 4 * t.fields.size()) {
      t.kept.push_back(nb::borrow(key));
      t.by_key[key] = hit->second;
    }
    return hit->second;
  }

  void write_table(Bytes& out, int number, nb::handle value, std::size_t back) {
    Table& t = tables_[static_cast<std::size_t>(number)];
    if (!PyDict_Check(value.ptr())) throw nb::type_error((t.name + ": expected a dict").c_str());
    struct Given {
      const Field* field;
      PyObject* value;
    };
    std::vector<Given> given;
    given.reserve(t.fields.size());
    PyObject *key, *v;
    Py_ssize_t pos = 0;
    int slots = 0;
    while (PyDict_Next(value.ptr(), &pos, &key, &v)) {
      const Field& f = t.fields[static_cast<std::size_t>(field_of(t, key))];
      given.push_back({&f, v});
      slots = std::max(slots, f.slot + 1);
    }
    std::sort(given.begin(), given.end(), [](const Given& a, const Given& b) {  // the widest first, so nothing needs padding
      return a.field->scalar.width != b.field->scalar.width ? a.field->scalar.width > b.field->scalar.width
                                                           : a.field->slot < b.field->slot;
    });
    const bool wide = !given.empty() && given.front().field->scalar.width == 8;
    std::string vtable(static_cast<std::size_t>(4 + 2 * slots), '\0');
    auto at = static_cast<std::uint16_t>(wide ? 8 : 4);
    const auto note = [&vtable](int i, std::uint16_t n) { std::memcpy(vtable.data() + 2 * i, &n, 2); };
    for (const Given& g : given) {
      note(2 + g.field->slot, at);
      at = static_cast<std::uint16_t>(at + g.field->scalar.width);
    }
    note(0, static_cast<std::uint16_t>(vtable.size()));
    note(1, at);
    const std::size_t described = out.vtable(vtable);
    out.pad(wide ? 8 : 4);
    const std::size_t start = out.size();
    out.point(back);
    out.put(static_cast<std::int32_t>(start - described));
    if (wide) out.put(std::int32_t{0});
    for (const Given& g : given) {
      if (g.field->scalar.code)
        write_scalar(out, g.field->scalar, g.value, t.name, g.field->name);
      else
        out.put(std::uint32_t{0});
    }
    at = wide ? 8 : 4;
    for (const Given& g : given) {
      if (!g.field->scalar.code) write_ref(out, g.field->ref, g.value, start + at, &t, g.field, value);
      at = static_cast<std::uint16_t>(at + g.field->scalar.width);
    }
  }

  // owner: of a union, the table in which the field stands.
  void write_ref(Bytes& out, int number, nb::handle v, std::size_t back, const Table* t, const Field* f, nb::handle owner) {
    const Ref& r = refs_[static_cast<std::size_t>(number)];
    switch (r.what) {
      case Ref::kTable:
        return write_table(out, r.target, v, back);
      case Ref::kUnion: {
        PyObject* tag = PyDict_GetItemWithError(owner.ptr(), f->tag.ptr());
        const long long wanted = tag ? nb::cast<long long>(nb::int_(nb::handle(tag))) : -1;
        for (const auto& [number, table] : unions_[static_cast<std::size_t>(r.target)])
          if (tag && number == wanted) return write_table(out, table, v, back);
        throw nb::key_error((t->name + "." + f->name + ": no table of that type").c_str());
      }
      case Ref::kText:
        return write_text(out, v, back, t->name, f->name);
      case Ref::kNumbers:
        return write_numbers(out, r, v, back, t->name, f->name);
      case Ref::kOffsets:
        break;
    }
    const nb::object items = nb::steal(PySequence_Fast(v.ptr(), "expected a list"));
    if (!items.is_valid()) throw nb::python_error();
    const auto n = static_cast<std::size_t>(PySequence_Size(items.ptr()));
    out.pad(4);
    out.point(back);
    const std::size_t first = out.size() + 4;
    out.put(static_cast<std::uint32_t>(n));
    out.data.append(4 * n, '\0');
    for (std::size_t i = 0; i < n; ++i) write_ref(out, r.target, items[i], first + 4 * i, t, f, owner);
  }

  static void write_text(Bytes& out, nb::handle v, std::size_t back, const std::string& table, const std::string& field) {
    const char* text = nullptr;
    Py_ssize_t n = 0;
    char* bytes = nullptr;
    if (PyUnicode_Check(v.ptr())) {
      text = PyUnicode_AsUTF8AndSize(v.ptr(), &n);
      if (!text) throw nb::python_error();
    } else if (PyBytes_Check(v.ptr())) {
      PyBytes_AsStringAndSize(v.ptr(), &bytes, &n);
      text = bytes;
    } else {
      throw nb::type_error((table + "." + field + ": expected a string").c_str());
    }
    out.pad(4);
    out.point(back);
    out.put(static_cast<std::uint32_t>(n));
    out.data.append(text, static_cast<std::size_t>(n));
    out.data.push_back('\0');
  }

  void write_numbers(Bytes& out, const Ref& r, nb::handle v, std::size_t back, const std::string& table,
                     const std::string& field) {
    PyObject* p = v.ptr();
    nb::object raw;
    if (!PyTuple_Check(p) && !PyList_Check(p) && !PyBytes_Check(p)) {  // an array: whatever its type, as numbers
      raw = v.attr("astype")(nb::str(&r.element.code, 1)).attr("tobytes")();
      p = raw.ptr();
    }
    out.pad(r.align, 4);
    out.point(back);
    if (PyTuple_Check(p) || PyList_Check(p)) {
      const auto n = static_cast<std::size_t>(PySequence_Size(p));
      out.put(static_cast<std::uint32_t>(n));
      for (std::size_t i = 0; i < n; ++i) {
        const auto k = static_cast<Py_ssize_t>(i);
        write_scalar(out, r.element, PyTuple_Check(p) ? PyTuple_GetItem(p, k) : PyList_GetItem(p, k), table, field);
      }
      return;
    }
    char* bytes = nullptr;
    Py_ssize_t n = 0;
    if (PyBytes_AsStringAndSize(p, &bytes, &n)) throw nb::python_error();
    if (n % r.element.width) throw nb::value_error((table + "." + field + ": not a whole number of elements").c_str());
    out.put(static_cast<std::uint32_t>(n / r.element.width));
    out.data.append(bytes, static_cast<std::size_t>(n));
  }

  static void write_scalar(Bytes& out, Scalar s, PyObject* v, const std::string& table, const std::string& field) {
    const auto refuse = [&](const char* want) {
      PyErr_Clear();
      const auto text = nb::cast<std::string>(nb::repr(v));
      throw nb::value_error((table + "." + field + ": expected " + want + ", got " + text).c_str());
    };
    if (s.code == 'f' || s.code == 'd') {
      const double d = PyFloat_AsDouble(v);
      if (d == -1.0 && PyErr_Occurred()) refuse("a number");
      if (s.code == 'd') return out.put(d);
      return out.put(static_cast<float>(d));
    }
    if (s.code == '?') {
      const int b = PyObject_IsTrue(v);
      if (b < 0) throw nb::python_error();
      return out.put(static_cast<std::uint8_t>(b));
    }
    const nb::object whole = PyLong_Check(v) ? nb::borrow(v) : nb::steal(PyNumber_Index(v));
    if (!whole.is_valid()) refuse("an integer");
    if (s.code == 'Q') {
      const unsigned long long u = PyLong_AsUnsignedLongLong(whole.ptr());
      if (u == static_cast<unsigned long long>(-1) && PyErr_Occurred()) refuse("a u64");
      return out.put(static_cast<std::uint64_t>(u));
    }
    const long long i = PyLong_AsLongLong(whole.ptr());
    if (i == -1 && PyErr_Occurred()) refuse("an i64");
    // signed ones have small letters
    const int bits = 8 * s.width;
    const bool is_signed = s.code >= 'a';
    const long long low = is_signed ? -1 - ((1LL << (bits - 2)) - 1 + (1LL << (bits - 2))) : 0;
    const long long high = bits == 64 ? -1 - low : (1LL << (is_signed ? bits - 1 : bits)) - 1;
    if (i < low || i > high) {
      const char kind[] = {is_signed ? 'i' : 'u', 0};
      refuse(((is_signed ? "an " : "a ") + std::string(kind) + std::to_string(bits)).c_str());
    }
    out.data.append(reinterpret_cast<const char*>(&i), static_cast<std::size_t>(s.width));  // little-endian
  }

  std::vector<Table> tables_;
  std::unordered_map<std::string, int> numbers_, union_numbers_;
  std::vector<std::vector<std::pair<long long, int>>> unions_;
  std::vector<Ref> refs_;
};

const Family kFlatBuffersFamily{[](nb::module_& m) {
  nb::class_<FlatBuffers>(m, "FlatBuffers")
      .def(nb::init<nb::dict, nb::dict>(), nb::arg("tables"), nb::arg("unions"))
      .def("encode", &FlatBuffers::encode, nb::arg("table"), nb::arg("value"), nb::arg("identifier"));
}};

}  // namespace

}  // namespace opconform::bind
