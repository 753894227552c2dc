// Elementary functions for the functors: double for inputs of up to 32 bits, long double for f64 inputs, where it is wider
// (x87: half an ulp and a little; where long double is double the f64 results are those of the C library).
#pragma once

#include <cmath>

namespace opconform::math {

inline double exp(double x) { return std::exp(x); }
inline double exp2(double x) { return std::exp2(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log(double x) { return std::log(x); }
inline double log2(double x) { return std::log2(x); }
inline double log10(double x) { return std::log10(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double tan(double x) { return std::tan(x); }
inline double asin(double x) { return std::asin(x); }
inline double acos(double x) { return std::acos(x); }
inline double atan(double x) { return std::atan(x); }
inline double sinh(double x) { return std::sinh(x); }
inline double cosh(double x) { return std::cosh(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double asinh(double x) { return std::asinh(x); }
inline double acosh(double x) { return std::acosh(x); }
inline double atanh(double x) { return std::atanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double erfc(double x) { return std::erfc(x); }

inline long double exp(long double x) { return std::exp(x); }
inline long double exp2(long double x) { return std::exp2(x); }
inline long double expm1(long double x) { return std::expm1(x); }
inline long double log(long double x) { return std::log(x); }
inline long double log2(long double x) { return std::log2(x); }
inline long double log10(long double x) { return std::log10(x); }
inline long double log1p(long double x) { return std::log1p(x); }
inline long double sin(long double x) { return std::sin(x); }
inline long double cos(long double x) { return std::cos(x); }
inline long double tan(long double x) { return std::tan(x); }
inline long double asin(long double x) { return std::asin(x); }
inline long double acos(long double x) { return std::acos(x); }
inline long double atan(long double x) { return std::atan(x); }
inline long double sinh(long double x) { return std::sinh(x); }
inline long double cosh(long double x) { return std::cosh(x); }
inline long double tanh(long double x) { return std::tanh(x); }
inline long double asinh(long double x) { return std::asinh(x); }
inline long double acosh(long double x) { return std::acosh(x); }
inline long double atanh(long double x) { return std::atanh(x); }
inline long double erf(long double x) { return std::erf(x); }
inline long double erfc(long double x) { return std::erfc(x); }

}  // namespace opconform::math
