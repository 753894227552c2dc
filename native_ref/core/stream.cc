// Reader and Writer, compiled once for all kernels.
#include "native_ref/core/block.h"

namespace opconform {
namespace {

template <class Load, class T>
void pull(Walk<1>& walk, Load load, T* dst, Index n) {
  while (n > 0) {
    const Index m = n < walk.run() ? n : walk.run();
    load(walk.ptr(0), walk.step(0), m, dst);
    walk.advance(m);
    dst += m;
    n -= m;
  }
}

template <class Store, class T>
void push(Walk<1>& walk, Store store, const T* src, Index n) {
  while (n > 0) {
    const Index m = n < walk.run() ? n : walk.run();
    store(src, walk.ptr(0), walk.step(0), m);
    walk.advance(m);
    src += m;
    n -= m;
  }
}

}  // namespace

Reader::Reader(const Tensor& t)
    : walk_({&t}), f64_(load_f64(t.dtype)), i64_(load_i64(t.dtype)), plain_(t.dtype == DType::f64) {}

void Reader::next(double* dst, Index n) { pull(walk_, f64_, dst, n); }
void Reader::next(std::int64_t* dst, Index n) { pull(walk_, i64_, dst, n); }

const double* Reader::look(double* room, Index n) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(walk_.ptr(0)) % alignof(double) == 0;
  if (plain_ && walk_.step(0) == 8 && walk_.run() >= n && n > 0 && aligned) {
    const auto* p = reinterpret_cast<const double*>(walk_.ptr(0));
    walk_.advance(n);
    return p;
  }
  next(room, n);
  return room;
}

Writer::Writer(const Tensor& t) : walk_({&t}), f64_(store_f64(t.dtype)), i64_(store_i64(t.dtype)) {}

void Writer::next(const double* src, Index n) { push(walk_, f64_, src, n); }
void Writer::next(const std::int64_t* src, Index n) { push(walk_, i64_, src, n); }

}  // namespace opconform
