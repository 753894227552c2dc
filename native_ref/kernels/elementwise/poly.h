// Written by coefficients.py.
#pragma once

namespace opconform::math {

// (e^r - 1 - r) / r^2, on [-0.34692, 0.34692], error 1.1e-16
inline constexpr double kExpm1[] = {
    0x1.0000000000001p-1, 0x1.5555555555556p-3, 0x1.5555555553d37p-5, 0x1.11111111109a6p-7,
    0x1.6c16c1789d1d7p-10, 0x1.a01a01a7cebcdp-13, 0x1.a019b8ca26fcfp-16, 0x1.71de0d85293b8p-19,
    0x1.2891d4ffbb0f9p-22, 0x1.af390ba7e6f47p-26,
};
// (log((1+s)/(1-s)) - 2s) / s as a polynomial in z = s^2, without its factor z, on [0.0, 0.0294667], error 2.1e-18
inline constexpr double kLog[] = {
    0x1.5555555555555p-1, 0x1.9999999999a39p-2, 0x1.2492492476a1ap-2, 0x1.c71c7201a55d7p-3,
    0x1.745cf8e4bba1bp-3, 0x1.3b1c3c1c81c8fp-3, 0x1.0fbde0f4ad17bp-3, 0x1.0c0aff044a970p-3,
};
// the same less 2/3, without its next factor z, on [0.0, 0.0294667], error 1.9e-18
inline constexpr double kLogRest[] = {
    0x1.999999999999ap-2, 0x1.2492492492522p-2, 0x1.c71c71c6ea5acp-3, 0x1.745d177ad436ap-3,
    0x1.3b1395b82701ep-3, 0x1.1118cd67251c5p-3, 0x1.df7ba1f4809c3p-4, 0x1.e03a7acf07f85p-4,
};
// (e^r - 1 - r - r^2/2) / r^3, on [-0.34692, 0.34692], error 8.1e-18
inline constexpr double kExpRest[] = {
    0x1.5555555555556p-3, 0x1.5555555555555p-5, 0x1.11111111109a6p-7, 0x1.6c16c16c167dap-10,
    0x1.a01a01a7cebcdp-13, 0x1.a01a01a48116fp-16, 0x1.71de0d85293b8p-19, 0x1.27e4e1dcf773bp-22,
    0x1.af390ba7e6f47p-26, 0x1.1f6717774d5e0p-29,
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
// erf(x) / x in x^2, on [0.0, 1.0], error 7.4e-18
inline constexpr double kErf[] = {
    0x1.20dd750429b6dp+0, -0x1.812746b0379c1p-2, 0x1.ce2f21a040f66p-4, -0x1.b82ce31203772p-6,
    0x1.565bccfa44156p-8, -0x1.c02db0665e53dp-11, 0x1.f9a2be4f731a1p-14, -0x1.f4ca838adb73bp-17,
    0x1.b981d78881a5dp-20, -0x1.5c131500d3f88p-23, 0x1.d76af6ca49787p-27, -0x1.ac9585a44fe29p-31,
};
// (atan t - t) / t^3 in t^2, on [0.0, 0.171744], error 3.2e-17
inline constexpr double kAtan[] = {
    -0x1.5555555555555p-2, 0x1.999999999933dp-3, -0x1.24924924355d5p-3, 0x1.c71c7184c32bfp-4,
    -0x1.745d0b153ffadp-4, 0x1.3b126143b5cbcp-4, -0x1.10fa5ee9ab25cp-4, 0x1.dfe49b2919c4ep-5,
    -0x1.a090d1950d2b4p-5, 0x1.41495cefb6c73p-5, -0x1.39f38ad451ea6p-6,
};
// e^(x^2) erfc(x) (1 + 2x) in t = (x - 4) / (x + 4), on [-1.0, 0.75], error 6.8e-17
inline constexpr double kErfcx[] = {
    0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a290p-3, 0x1.f7f5df66fb86cp-7, 0x1.16ecefcfa568fp-4,
    -0x1.9ddb23c3dbf7ep-4, 0x1.7fee004e0b17cp-4, -0x1.0fb06dff5be88p-4, 0x1.3079edf74dfa8p-5,
    -0x1.096238568ead0p-6, 0x1.49c672613491bp-8, -0x1.8d4abee6e794dp-11, -0x1.a1df1fd37a91ap-13,
    0x1.3be28aa5264a0p-13, -0x1.99573aaf8d6cap-16, -0x1.78e2e25fb32a5p-17, 0x1.7efa8caa8bd96p-18,
    0x1.4cccc375dcb21p-22, -0x1.b792609d7a011p-21, 0x1.f95d9c1b8f9dfp-25, 0x1.b547fff5a3ee4p-24,
    -0x1.44ea3e753d03fp-27, -0x1.3203d7029540dp-27,
};
// e^(x^2) erfc(x) in t = (x - 2.5) / (x + 2.5), on [-0.428571, 0.411765], error 3.1e-17
inline constexpr double kErfTail[] = {
    0x1.afbb3f3b7343bp-3, -0x1.7ca88dec2179fp-2, 0x1.01c11a735cd90p-2, -0x1.0011543717910p-3,
    0x1.470ba1f67a1a9p-5, -0x1.05bb2fdf6af31p-8, -0x1.5a5716b1b771fp-9, 0x1.cb3b5c1d1aec7p-11,
    0x1.def28f2749997p-13, -0x1.0e4525f30bfc3p-13, -0x1.1eafcc284801bp-15, 0x1.38006c5e8491ep-16,
    0x1.f74c7792ffaecp-18, -0x1.2bb032d568ee0p-19, -0x1.aa2d5ed17d342p-20,
};

}  // namespace opconform::math
