// Tiles of a matrix product, which is what a convolution spends its time in.
#pragma once

#include <cstddef>
#include <vector>

namespace adreno_bench::clml {

constexpr std::size_t kTileRows = 6;
constexpr std::size_t kTileColumns = 16;

/// A matrix cut into bands of kTileRows rows; in a band, column after column. Missing rows of the last band are 0.
std::vector<float> PackRows(const float* matrix, std::size_t rows, std::size_t depth);

/// tile[kTileRows][kTileColumns] = band[depth][kTileRows]^T * panel[depth][kTileColumns].
void MultiplyTile(const float* band, const float* panel, std::size_t depth, float* tile);

}  // namespace adreno_bench::clml
