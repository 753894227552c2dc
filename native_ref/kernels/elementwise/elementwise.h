// Elementwise functions: one functor each, run over blocks of f64 or of 64-bit integers.
#pragma once

#include "native_ref/core/table.h"
#include "native_ref/core/tensor.h"

namespace opconform {

// What a functor has a version for.
struct UnaryEntry {
  const char* name;
  int params;  // how many of p[] it reads
  bool to_bool;
  void (*f)(double* x, Index n, const double* p);
  void (*wide)(double* x, Index n, const double* p);  // for f64 inputs, through long double; null: f is exact enough
  void (*s)(std::int64_t* x, Index n);    // signed; null: integers go through f64
  void (*u)(std::int64_t* x, Index n);    // unsigned
  // f32 to f32 with the bits that f and one rounding give, n <= kBlock; null: always through f64; false: not these
  bool (*direct)(const float* x, float* y, Index n, const double* p);
};

struct BinaryEntry {
  const char* name;
  bool to_bool;
  void (*f)(double* x, const double* y, Index n);  // x is overwritten with the result; null: integers only
  void (*wide)(double* x, const double* y, Index n);  // where an operand has 64 bits; null: f is good enough
  void (*s)(std::int64_t* x, const std::int64_t* y, Index n, int bits);
  void (*u)(std::int64_t* x, const std::int64_t* y, Index n, int bits);
  // f32 to f32 (or bool) with the bits that f and one rounding give; null: always through f64
  void (*direct)(const float* x, const float* y, void* z, Index n);
};

struct UnaryTable {
  std::size_t size;
  const UnaryEntry* entries;
  std::size_t count;
  // y has x's shape.  ints: run the integer version (x and y are integer or bool types).
  void (*run)(const UnaryEntry& op, const Tensor& x, const Tensor& y, const double* p, bool ints);
};

struct BinaryTable {
  std::size_t size;
  const BinaryEntry* entries;
  std::size_t count;
  // x and y are expanded to z's shape.
  void (*run)(const BinaryEntry& op, const Tensor& x, const Tensor& y, const Tensor& z, bool ints, bool is_signed);
};

// Does t lie in memory as a plain array of f32?
inline bool plain_f32(const Tensor& t) {
  return t.dtype == DType::f32 && t.contiguous() && reinterpret_cast<std::uintptr_t>(t.data) % alignof(float) == 0;
}

}  // namespace opconform
