// IEEE binary16, for compilers that have no type for it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace adreno_bench::clml {

inline float FromHalf(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 31;
  const std::uint32_t mantissa = half & 1023;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * static_cast<float>(mantissa) * 0x1p-24f;
  const std::uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Rounds to nearest, ties to even.
inline std::uint16_t ToHalf(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const std::uint32_t sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00);
  if (bits >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // rounds above the largest half
  if (bits < 0x38800000) {
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::lrint(std::fabs(value) * 0x1p24f)));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return static_cast<std::uint16_t>(sign | (bits - 0x38000000) >> 13);
}

}  // namespace adreno_bench::clml
