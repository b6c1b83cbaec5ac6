// SPDX-License-Identifier: Apache-2.0
//
// The tile units of AMX for products in Arithmetic::kBf16.
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "kernels/detail/HostOps.hpp"
#include "kernels/detail/SimdAvx512.hpp"
#include "kernels/detail/amx_product.inl.hpp"

namespace taper::detail {
namespace {

// Every thread has its own configuration: all eight tiles have 16 rows of 64 bytes.
struct Amx {
  static void configure() {
    struct alignas(64) Configuration {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static const Configuration configuration;
    static_assert(sizeof(Configuration) == 64);
    _tile_loadconfig(&configuration);
  }
  static void release() { _tile_release(); }
  // Intrinsics want numbers that are written out; assembly takes constants.
  template <int tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  static void load(const void* data, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(data), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(void* data, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(data), "r"(stride), "i"(tile) : "memory");
  }
  template <int sums, int a, int w>
  static void add_products() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(w));
  }
};

// A name of its own for the same vectors, so that no other file's functions stand in for these.
struct AmxVectors : Avx512 {};

}  // namespace

void amx_product(const ProductArgs& args, int row_begin, int row_end, int panel) {
  amx_product_task<AmxVectors, Amx>(args, row_begin, row_end, panel);
}

// Linux keeps the registers of tiles from processes that have not asked for them.
bool ask_for_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace taper::detail
