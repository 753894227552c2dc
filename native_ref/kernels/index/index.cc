#include "native_ref/kernels/index/index.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"

namespace opconform {
namespace {

constexpr std::size_t at(Index i) { return static_cast<std::size_t>(i); }

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

// Any real number as an integer that compares the same way: zeros alike, NaN above all.
std::int64_t ordered(double v) {
  if (v != v) return std::numeric_limits<std::int64_t>::max();
  const auto b = std::bit_cast<std::int64_t>(v + 0.0);
  return b < 0 ? static_cast<std::int64_t>(~static_cast<std::uint64_t>(b) ^ (1ull << 63)) : b;
}

struct Place {
  std::int64_t key, index;
  bool operator<(const Place& o) const { return key != o.key ? key < o.key : index < o.index; }
};

void rank(const Tensor& x, int axis, bool descending, Index k, const Tensor& out) {
  const Index total = x.size(), n = x.dim(axis);
  if (out.size() == 0) return;
  Index inner = 1;
  for (int a = axis + 1; a < x.rank; ++a) inner *= x.dim(a);
  std::vector<std::int64_t> keys(at(total));
  Reader reader(x);
  if (is_int(x.dtype)) {
    reader.next(keys.data(), total);
    if (x.dtype == DType::u64)
      for (auto& v : keys) v = static_cast<std::int64_t>(static_cast<std::uint64_t>(v) ^ (1ull << 63));
  } else {
    double block[kBlock];
    for (Index i = 0; i < total; i += kBlock) {
      const Index m = std::min(kBlock, total - i);
      reader.next(block, m);
      for (Index j = 0; j < m; ++j) keys[at(i + j)] = ordered(block[j]);
    }
  }
  auto* to = reinterpret_cast<std::int64_t*>(out.data);
  std::vector<Place> line(at(n));
  for (Index o = 0; o < total / (n * inner); ++o)
    for (Index i = 0; i < inner; ++i) {
      for (Index j = 0; j < n; ++j) {
        const std::int64_t key = keys[at((o * n + j) * inner + i)];
        line[at(j)] = {descending ? ~key : key, j};
      }
      if (4 * k < n)
        std::partial_sort(line.begin(), line.begin() + k, line.end());
      else
        std::sort(line.begin(), line.end());
      for (Index j = 0; j < k; ++j) to[(o * k + j) * inner + i] = line[at(j)].index;
    }
}

// A positive real as m * 2^(e - 31), m in [2^30, 2^31); below 2^-32 it counts as zero.
struct Multiplier {
  std::int64_t m = 0;
  int left = 0, right = 0;
  explicit Multiplier(double scale) {
    int e = 0;
    m = static_cast<std::int64_t>(std::floor(std::frexp(scale, &e) * 0x1p31 + 0.5));
    if (m == std::int64_t{1} << 31) {
      m >>= 1;
      ++e;
    }
    if (e < -31) m = e = 0;
    left = std::min(std::max(e, 0), 31);
    right = std::max(-e, 0);
  }
};

std::int64_t scaled(std::int64_t acc, const Multiplier& by) {
  constexpr std::int64_t low = -(std::int64_t{1} << 31), high = (std::int64_t{1} << 31) - 1;
  // bounded first, so that the shift cannot overflow; the product is below 2^62
  const std::int64_t wide = std::clamp(std::clamp(acc, low, high) * (std::int64_t{1} << by.left), low, high);
  const std::int64_t p = wide * by.m, s = p + (p >= 0 ? std::int64_t{1} << 30 : 1 - (std::int64_t{1} << 30));
  const std::int64_t h = s / (std::int64_t{1} << 31);  // toward zero
  const std::int64_t mask = (std::int64_t{1} << by.right) - 1, rest = h & mask;
  return (h >> by.right) + (rest > (mask >> 1) + (h < 0) ? 1 : 0);
}

void fixed(const Tensor& acc, const Tensor& scale, const Tensor& out) {
  Reader a(acc), b(scale);
  auto* to = reinterpret_cast<std::int64_t*>(out.data);
  std::int64_t x[kBlock];
  double s[kBlock];
  double last = 1;
  Multiplier by(last);
  for (Index left = out.size(); left > 0; left -= kBlock, to += kBlock) {
    const Index n = std::min(left, kBlock);
    a.next(x, n);
    b.next(s, n);
    for (Index i = 0; i < n; ++i) {
      if (s[i] != last) by = Multiplier(last = s[i]);
      to[i] = scaled(x[i], by);
    }
  }
}

}  // namespace

OPCONFORM_TABLE const IndexTable opconform_index{sizeof(IndexTable), resolve, take, take_along, take_tuples, rank, fixed};

}  // namespace opconform
