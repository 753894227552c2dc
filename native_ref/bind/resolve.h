// What the bindings that take indices share.
#pragma once

#include "native_ref/bind/array.h"
#include "native_ref/kernels/index/index.h"

namespace opconform::bind {

inline const IndexTable& index_kernels() {
  static const IndexTable& k = table<IndexTable>("opconform_index");
  return k;
}

// Counted from the front; an index outside raises IndexError "index I for extent N".
inline std::vector<std::int64_t> resolved(const char* what, const Tensor& index, std::span<const Index> extents, bool is_signed) {
  if (!is_int(index.dtype)) throw Error(std::string(what) + ": indices are " + info(index.dtype).name);
  std::vector<std::int64_t> to(static_cast<std::size_t>(index.size()));
  const auto tuple = static_cast<Index>(extents.size());
  const Index bad = to.empty() ? -1 : index_kernels().resolve(index, extents.data(), tuple, is_signed, to.data());
  if (bad >= 0) {
    const Index extent = extents[static_cast<std::size_t>(bad % tuple)];
    const std::int64_t v = to[static_cast<std::size_t>(bad)];
    const std::string seen = index.dtype == DType::u64 ? std::to_string(static_cast<std::uint64_t>(v)) : std::to_string(v);
    throw nb::index_error(("index " + seen + " for extent " + std::to_string(extent)).c_str());
  }
  return to;
}

inline Index product(const Tensor& t, int from, int to) {
  Index n = 1;
  for (int i = from; i < to; ++i) n *= t.dim(i);
  return n;
}

inline int axis_of(Index axis, int rank, const char* what) {
  const Index a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    throw Error(std::string(what) + ": axis " + std::to_string(axis) + " out of range for rank " + std::to_string(rank));
  return static_cast<int>(a);
}

}  // namespace opconform::bind
