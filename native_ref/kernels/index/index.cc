#include "native_ref/kernels/index/index.h"

#include <cstring>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"

namespace opconform {
namespace {

Index resolve(const Tensor& index, const Index* extents, Index tuple, bool is_signed, std::int64_t* to) {
  const Index n = index.size();
  Reader(index).next(to, n);
  const bool huge = index.dtype == DType::u64;  // above 2^63 they would look negative
  for (Index i = 0, t = 0; i < n; ++i, t = t + 1 == tuple ? 0 : t + 1) {
    const std::int64_t v = to[i], extent = extents[t];
    if (v >= 0 && v < extent) continue;
    if (!is_signed || huge || v >= 0 || v < -extent) return i;
    to[i] = v + extent;
  }
  return -1;
}

// Copies of a size that is known while compiling where it is a usual one.
template <class F>
void with_bytes(Index bytes, F&& f) {
  switch (bytes) {
    case 1: return f([](char* to, const char* from) { std::memcpy(to, from, 1); });
    case 2: return f([](char* to, const char* from) { std::memcpy(to, from, 2); });
    case 4: return f([](char* to, const char* from) { std::memcpy(to, from, 4); });
    case 8: return f([](char* to, const char* from) { std::memcpy(to, from, 8); });
    default: return f([bytes](char* to, const char* from) { std::memcpy(to, from, at(bytes)); });
  }
}

void take(const char* from, char* to, const std::int64_t* index, Index lead, Index outer, Index n, Index m, Index bytes) {
  with_bytes(bytes, [&](auto copy) {
    for (Index l = 0; l < lead; ++l, index += m)
      for (Index o = 0; o < outer; ++o, from += n * bytes)
        for (Index j = 0; j < m; ++j, to += bytes) copy(to, from + index[j] * bytes);
  });
}

void take_along(const Tensor& x, const std::int64_t* index, int axis, const Tensor& y) {
  const Index total = y.size(), last = y.rank - 1, run = y.dim(y.rank - 1), along = x.step(axis);
  const Index step = axis == last ? 0 : x.step(y.rank - 1);
  std::array<Index, kMaxRank> i{};
  const char* row = x.data;
  char* to = y.data;
  with_bytes(y.bytes(), [&](auto copy) {
    for (Index done = 0; done < total; done += run) {
      for (Index j = 0; j < run; ++j, to += y.bytes()) copy(to, row + j * step + *index++ * along);
      for (int a = y.rank - 2; a >= 0; --a) {
        const Index s = a == axis ? 0 : x.step(a);
        row += s;
        if (++i[at(a)] < y.dim(a)) break;
        row -= s * y.dim(a);
        i[at(a)] = 0;
      }
    }
  });
}

void take_tuples(const char* from, char* to, const std::int64_t* index, const Index* step, Index tuple, Index rows, Index per,
                 Index lead_step, Index bytes) {
  with_bytes(bytes, [&](auto copy) {
    for (Index r = 0; r < rows; ++r, index += tuple, to += bytes) {
      const char* p = from + r / per * lead_step;
      for (Index t = 0; t < tuple; ++t) p += index[t] * step[t];
      copy(to, p);
    }
  });
}

}  // namespace

OPCONFORM_TABLE const IndexTable opconform_index{sizeof(IndexTable), resolve, take, take_along, take_tuples};

}  // namespace opconform
