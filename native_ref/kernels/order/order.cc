#include "native_ref/kernels/order/order.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <vector>

#include "native_ref/core/block.h"
#include "native_ref/core/table.h"

namespace opconform {
namespace {

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

std::vector<std::int64_t> keys_of(const Tensor& x) {
  const Index total = x.size();
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
  return keys;
}

Index inner_of(const Tensor& x, int axis) {
  Index n = 1;
  for (int a = axis + 1; a < x.rank; ++a) n *= x.dim(a);
  return n;
}

void rank(const Tensor& x, int axis, bool descending, Index k, const Tensor& out) {
  if (out.size() == 0) return;
  const Index total = x.size(), n = x.dim(axis), inner = inner_of(x, axis);
  const std::vector<std::int64_t> keys = keys_of(x);
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

Index unique(const Tensor& x, int axis, bool rising, std::int64_t* first, std::int64_t* inverse, std::int64_t* counts) {
  const Index n = x.dim(axis), inner = inner_of(x, axis), outer = n == 0 ? 0 : x.size() / (n * inner == 0 ? 1 : n * inner);
  const Index width = outer * inner;
  // a slice's keys side by side
  std::vector<std::int64_t> keys(at(n * width));
  const std::vector<std::int64_t> stored = keys_of(x);
  for (Index o = 0, from = 0; o < outer; ++o)
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < inner; ++j) keys[at(i * width + o * inner + j)] = stored[at(from++)];
  const auto slice = [&](Index i) { return keys.begin() + i * width; };
  std::vector<std::int64_t> order(at(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    for (Index j = 0; j < width; ++j)
      if (slice(a)[j] != slice(b)[j]) return slice(a)[j] < slice(b)[j];
    return a < b;
  });
  // groups of equals in rising order; the first of a group is its lowest index
  Index groups = 0;
  for (Index i = 0; i < n; ++i) {
    const std::int64_t v = order[at(i)];
    if (i == 0 || !std::equal(slice(v), slice(v) + width, slice(order[at(i - 1)]))) {
      first[groups] = v;
      counts[groups++] = 0;
    }
    ++counts[groups - 1];
    inverse[v] = groups - 1;
  }
  if (rising) return groups;
  std::vector<std::int64_t> by_first(at(groups)), place(at(groups)), old_first(first, first + groups),
      old_counts(counts, counts + groups);
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(), [&](std::int64_t a, std::int64_t b) { return old_first[at(a)] < old_first[at(b)]; });
  for (Index g = 0; g < groups; ++g) {
    const std::int64_t was = by_first[at(g)];
    place[at(was)] = g;
    first[g] = old_first[at(was)];
    counts[g] = old_counts[at(was)];
  }
  for (Index i = 0; i < n; ++i) inverse[i] = place[at(inverse[i])];
  return groups;
}

}  // namespace

OPCONFORM_TABLE const OrderTable opconform_order{sizeof(OrderTable), rank, unique};

}  // namespace opconform
