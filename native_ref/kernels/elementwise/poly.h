// Written by coefficients.py.
#pragma once

namespace opconform::math {

// (e^r - 1 - r) / r^2, on [-0.34692, 0.34692], error 1.4e-18
inline constexpr double kExpm1[] = {
    0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100bep-7,
    0x1.6c16c16c162c3p-10, 0x1.a01a01abf85abp-13, 0x1.a01a01a6e1e2ap-16, 0x1.71de01fdbf9cap-19,
    0x1.27e4db46cddd1p-22, 0x1.af4e554377204p-26, 0x1.1f7340dbc337ep-29,
};
// (log((1+s)/(1-s)) - 2s) / s as a polynomial in z = s^2, without its factor z, on [0.0, 0.0294667], error 2.1e-18
inline constexpr double kLog[] = {
    0x1.5555555555555p-1, 0x1.9999999999a39p-2, 0x1.2492492476a1ap-2, 0x1.c71c7201a55d7p-3,
    0x1.745cf8e4bba1bp-3, 0x1.3b1c3c1c81c8fp-3, 0x1.0fbde0f4ad17bp-3, 0x1.0c0aff044a970p-3,
};
// (sin r - r) / r^3 in r^2, on [0.0, 0.617467], error 1.2e-20
inline constexpr double kSin[] = {
    -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a01992fp-13, 0x1.71de3a545f836p-19,
    -0x1.ae645410e937bp-26, 0x1.61217d9252c03p-33, -0x1.ab16f5caa198ap-41,
};
// (cos r - 1 + r^2/2) / r^4 in r^2, on [0.0, 0.617467], error 6.5e-22
inline constexpr double kCos[] = {
    0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d06p-16, -0x1.27e4fb77125c5p-22,
    0x1.1eed8deac3dfep-29, -0x1.9394b8bd50ae1p-37, 0x1.ab779550c8d9bp-45,
};
// erf(x) / x in x^2, on [0.0, 1.0], error 1.3e-19
inline constexpr double kErf[] = {
    0x1.20dd750429b6dp+0, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b30p-4, -0x1.b82ce31284e00p-6,
    0x1.565bcd0dbaa38p-8, -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17,
    0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23, 0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30,
    0x1.05ffd737fb32ep-34,
};
// (atan t - t) / t^3 in t^2, on [0.0, 0.171744], error 3.2e-17
inline constexpr double kAtan[] = {
    -0x1.5555555555555p-2, 0x1.999999999933dp-3, -0x1.24924924355d5p-3, 0x1.c71c7184c32bfp-4,
    -0x1.745d0b153ffadp-4, 0x1.3b126143b5cbcp-4, -0x1.10fa5ee9ab25cp-4, 0x1.dfe49b2919c4ep-5,
    -0x1.a090d1950d2b4p-5, 0x1.41495cefb6c73p-5, -0x1.39f38ad451ea6p-6,
};
// e^(x^2) erfc(x) (1 + 2x) in t = (x - 4) / (x + 4), on [-0.632653, 0.75], error 6.4e-19
inline constexpr double kErfcx[] = {
    0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a28ep-3, 0x1.f7f5df66fd7f5p-7, 0x1.16ecefcfa52b4p-4,
    -0x1.9ddb23c3e9348p-4, 0x1.7fee004e15198p-4, -0x1.0fb06dfe4458fp-4, 0x1.3079edf60181fp-5,
    -0x1.0962388648befp-6, 0x1.49c672ba601d7p-8, -0x1.8d4a9899c5bbdp-11, -0x1.a1df58ae628adp-13,
    0x1.3be0240c6ab0ep-13, -0x1.995149e1d02bbp-16, -0x1.7880c07566ce7p-17, 0x1.7ec2c568d253dp-18,
    0x1.394805a2541fep-22, -0x1.b4aece405ef32p-21, 0x1.43a1691c58b39p-24, 0x1.9d067e2130317p-24,
    -0x1.13813ea89c741p-26, -0x1.a7fe52b0e649ap-28,
};
// e^(x^2) erfc(x) in t = (x - 2.5) / (x + 2.5), on [-0.428571, 0.411765], error 1.0e-17
inline constexpr double kErfTail[] = {
    0x1.afbb3f3b7343ap-3, -0x1.7ca88dec217a4p-2, 0x1.01c11a735ce12p-2, -0x1.001154371704cp-3,
    0x1.470ba1f66220cp-5, -0x1.05bb2fe3d797cp-8, -0x1.5a57167cd25c8p-9, 0x1.cb3b600ad87b6p-11,
    0x1.def25794251e9p-13, -0x1.0e460ac2287b2p-13, -0x1.1ea84db776574p-15, 0x1.38381b1459556p-16,
    0x1.f64be7b5a367bp-18, -0x1.32951befcce73p-19, -0x1.a36ff5774dd16p-20, 0x1.5d5e7634f4ca6p-24,
};

}  // namespace opconform::math
