// SPDX-License-Identifier: Apache-2.0
//
// A tile unit in software, so that all but the instructions of AMX is tested on any processor.
#pragma once

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstring>

#include "kernels/canonical/tile_chain.hpp"
#include "kernels/detail/SimdScalar.hpp"
#include "kernels/detail/amx_product.inl.hpp"

namespace taper::test {

// Eight tiles of 16 rows of 64 bytes, as AMX has them; sums are those of the chain.
template <class Chain>
struct SoftwareTiles {
  using Tile = std::array<std::array<std::byte, 64>, 16>;
  static inline std::array<Tile, 8> tiles;
  static inline bool is_configured = false;

  static void configure() { is_configured = true; }
  static void release() { is_configured = false; }
  template <int tile>
  static void zero() {
    REQUIRE(is_configured);
    tiles[tile] = {};
  }
  template <int tile>
  static void load(const void* data, int stride) {
    REQUIRE(is_configured);
    for (int r = 0; r < 16; ++r)
      std::memcpy(tiles[tile][r].data(), static_cast<const char*>(data) + r * stride, 64);
  }
  template <int tile>
  static void store(void* data, int stride) {
    for (int r = 0; r < 16; ++r)
      std::memcpy(static_cast<char*>(data) + r * stride, tiles[tile][r].data(), 64);
  }
  template <int sums, int a, int w>
  static void add_products() {
    for (int r = 0; r < 16; ++r)
      for (int c = 0; c < 16; ++c) {
        std::array<float, canonical::kTileInputs> row, column;
        for (int k = 0; k < canonical::kTileInputs; ++k) {
          row[k] = element(tiles[a], r, k);
          column[k] = element(tiles[w], k / 2, 2 * c + k % 2);
        }
        float sum;
        std::memcpy(&sum, &tiles[sums][r][4 * c], 4);
        sum = Chain()(sum, row.data(), 1, column.data(), 1, canonical::kTileInputs);
        std::memcpy(&tiles[sums][r][4 * c], &sum, 4);
      }
  }

 private:
  static float element(const Tile& tile, int row, int at) {
    bf16 value;
    std::memcpy(&value, &tile[row][2 * at], 2);
    return to_float(value);
  }
};

// Products by such tiles.
template <class Chain>
constexpr auto kTilesOf = detail::amx_product_task<detail::Scalar, SoftwareTiles<Chain>>;
constexpr auto kTiles = kTilesOf<canonical::TileChain>;

}  // namespace taper::test
