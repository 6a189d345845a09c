#include "matmul.h"

#include <cstring>

namespace adreno_bench::clml {
namespace {

typedef float Lanes __attribute__((vector_size(32)));
constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(float);
constexpr std::size_t kVectors = kTileColumns / kLanes;

/// The accumulators stay in registers where a vector of eight floats is one.
inline __attribute__((always_inline)) void Multiply(const float* band, const float* panel, std::size_t depth,
                                                    float* tile) {
  Lanes sums[kTileRows][kVectors] = {};
  for (std::size_t k = 0; k < depth; ++k, band += kTileRows, panel += kTileColumns) {
    Lanes columns[kVectors];
    std::memcpy(columns, panel, sizeof(columns));
#pragma GCC unroll 6
    for (std::size_t row = 0; row < kTileRows; ++row) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < kVectors; ++v) sums[row][v] += columns[v] * band[row];
    }
  }
  std::memcpy(tile, sums, sizeof(sums));
}

using Multiplier = void (*)(const float*, const float*, std::size_t, float*);

void MultiplyAnywhere(const float* band, const float* panel, std::size_t depth, float* tile) {
  Multiply(band, panel, depth, tile);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void MultiplyWithAvx2(const float* band, const float* panel, std::size_t depth,
                                                          float* tile) {
  Multiply(band, panel, depth, tile);
}

Multiplier Choose() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? MultiplyWithAvx2 : MultiplyAnywhere;
}
#else
Multiplier Choose() { return MultiplyAnywhere; }
#endif

}  // namespace

std::vector<float> PackRows(const float* matrix, std::size_t rows, std::size_t depth) {
  const std::size_t bands = (rows + kTileRows - 1) / kTileRows;
  std::vector<float> packed(bands * depth * kTileRows);
  for (std::size_t row = 0; row < rows; ++row) {
    float* band = packed.data() + row / kTileRows * depth * kTileRows + row % kTileRows;
    for (std::size_t k = 0; k < depth; ++k) band[k * kTileRows] = matrix[row * depth + k];
  }
  return packed;
}

void MultiplyTile(const float* band, const float* panel, std::size_t depth, float* tile) {
  static const Multiplier multiply = Choose();
  multiply(band, panel, depth, tile);
}

}  // namespace adreno_bench::clml
