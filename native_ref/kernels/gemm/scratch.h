// Working memory that a thread keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace opconform::gemm {

using Index = std::int64_t;

template <class T>
class Scratch {  // grows, never shrinks; one per thread and use
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { drop(); }
  T* get(Index n) {
    if (n > size_) grow(n);
    return data_;
  }

 private:
  [[gnu::noinline]] void grow(Index n) {
    drop();
    data_ = nullptr, size_ = 0;
    const Index size = n + n / 4 + 64;
    data_ = static_cast<T*>(::operator new(static_cast<std::size_t>(size) * sizeof(T), std::align_val_t{64}));
    size_ = size;
  }
  void drop() { ::operator delete(data_, std::align_val_t{64}); }
  T* data_ = nullptr;
  Index size_ = 0;
};

}  // namespace opconform::gemm
