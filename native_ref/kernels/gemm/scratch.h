// Working memory that a thread keeps.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace opconform::gemm {

using Index = std::int64_t;

template <class T>
class Scratch {  // grows, never shrinks; one per thread and use
 public:
  T* get(Index n) {
    if (n > size_) {
      size_ = n + n / 4 + 64;
      data_.reset(static_cast<T*>(::operator new(static_cast<std::size_t>(size_) * sizeof(T), std::align_val_t{64})));
    }
    return data_.get();
  }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Free> data_;
  Index size_ = 0;
};

}  // namespace opconform::gemm
