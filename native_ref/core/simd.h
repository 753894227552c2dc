// The processor's intrinsics, where there are any for what we build, and the width of its vectors.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace opconform {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

}  // namespace opconform
