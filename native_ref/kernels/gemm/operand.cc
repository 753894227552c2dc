#include "native_ref/kernels/gemm/operand.h"

#include <type_traits>

#include "native_ref/core/block.h"

namespace opconform::gemm {

template <class T>
constexpr DType kTypeOf = std::is_same_v<T, float>    ? DType::f32
                          : std::is_same_v<T, double> ? DType::f64
                                                      : DType::i64;

template <class T>
Operand<T>::Operand(const Tensor& t) : rank_(t.rank), shape_(t.shape) {
  bool in_place = t.dtype == kTypeOf<T> || (std::is_same_v<T, std::int64_t> && t.dtype == DType::u64);
  for (int i = 0; i < t.rank; ++i) in_place = in_place && t.step(i) % static_cast<Index>(sizeof(T)) == 0;
  if (in_place) {
    data_ = reinterpret_cast<const T*>(t.data);
    for (int i = 0; i < t.rank; ++i) stride_[at(i)] = t.step(i) / static_cast<Index>(sizeof(T));
    return;
  }
  Tensor unique = t;  // broadcast axes are copied once
  for (int i = 0; i < t.rank; ++i)
    if (t.step(i) == 0) unique.shape[at(i)] = 1;
  const Index n = t.size() == 0 ? 0 : unique.size();
  copy_.resize(static_cast<std::size_t>(n));
  Reader reader(unique);
  if constexpr (std::is_same_v<T, float>) {
    double block[kBlock];
    for (Index i = 0; i < n; i += kBlock) {
      const Index m = n - i < kBlock ? n - i : kBlock;
      reader.next(block, m);
      for (Index j = 0; j < m; ++j) copy_[static_cast<std::size_t>(i + j)] = static_cast<float>(block[j]);
    }
  } else {
    reader.next(copy_.data(), n);
  }
  data_ = copy_.data();
  Index step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    stride_[at(i)] = unique.shape[at(i)] == 1 ? 0 : step;
    step *= unique.shape[at(i)];
  }
}

template class Operand<float>;
template class Operand<double>;
template class Operand<std::int64_t>;

}  // namespace opconform::gemm
