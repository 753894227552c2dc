// How a kernel family crosses from a per-ISA shared object to the bindings: one exported struct of function pointers.
//
// A family header declares `struct GemmTable { std::size_t size; void (*matmul)(...); ... };`, its .cc defines
// `OPCONFORM_TABLE const GemmTable opconform_gemm{sizeof(GemmTable), matmul, ...};`, the binding reads it with
// `static const GemmTable& k = table<GemmTable>("opconform_gemm");`.  `size` comes first and is checked, so that a kernel
// object from another build is refused rather than called.
#pragma once

#include <cstddef>

#define OPCONFORM_TABLE extern "C" __attribute__((visibility("default"), used))

namespace opconform {

// Address of a symbol of the chosen kernel object; throws when it is missing.
const void* kernel_symbol(const char* name, std::size_t size);

template <class Table>
const Table& table(const char* name) {
  return *static_cast<const Table*>(kernel_symbol(name, sizeof(Table)));
}

}  // namespace opconform
