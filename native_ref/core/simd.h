// The processor's intrinsics, where there are any for what we build.
#pragma once

#if defined(__AVX2__)
#if defined(__GNUC__) && !defined(__clang__)  // gcc 12 warns of its own undefined placeholders
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
