// SPDX-License-Identifier: Apache-2.0
//
// Memory of GPUs and page-locked memory, and what is left of it.
#include "device/ArenaMemory.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <vector>

#include "base/CudaCall.hpp"
#include "base/Error.hpp"
#include "device/Devices.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// Devices reserve pieces of some MiB.
constexpr std::int64_t kBytes = 64 << 20, kPiece = 4 << 20;

bool is_of_device(const void* p) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, p) == cudaSuccess &&
         attributes.type == cudaMemoryTypeDevice;
}

}  // namespace

TEST_CASE(
    "memory of models is on the GPU, that of staging where the host reads it; both are zero") {
  const ArenaMemory model(kBytes, MemoryKind::kModel), staging(kBytes, MemoryKind::kStaging);
  CHECK(is_of_device(model.base()));
  CHECK_FALSE(is_of_device(staging.base()));
  const std::vector<char> zeros(static_cast<std::size_t>(kBytes));
  std::vector<char> values(zeros.size(), 1);
  REQUIRE(cudaMemcpy(values.data(), model.base(), values.size(), cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  CHECK(values == zeros);
  CHECK(std::equal(zeros.begin(), zeros.end(), staging.base()));
}

TEST_CASE("what an arena takes is not left, and comes back") {
  const std::int64_t before = device_memory_left(), taken = device_memory_taken();
  {
    const ArenaMemory memory(kBytes, MemoryKind::kModel);
    CHECK(device_memory_left() <= before - kBytes + kPiece);
    CHECK(device_memory_taken() >= taken + kBytes - kPiece);
  }
  CHECK(device_memory_left() >= before - kPiece);
}

TEST_CASE("more than the GPU has is refused with what to do") {
  std::size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(device_memory_left() < static_cast<std::int64_t>(free));  // the driver wants some
  CHECK_THROWS_MATCHES(ArenaMemory(static_cast<std::int64_t>(free) + 1, MemoryKind::kModel), Error,
                       MessageMatches(ContainsSubstring("on the GPU of this rank") &&
                                      ContainsSubstring("use more ranks")));
}

TEST_CASE("a call that fails is named with the reason") {
  void* p = nullptr;
  CHECK_THROWS_MATCHES(
      require_cuda(cudaMalloc(&p, std::size_t{1} << 60), "cudaMalloc"), Error,
      MessageMatches(ContainsSubstring("cudaMalloc failed: cudaErrorMemoryAllocation")));
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);  // which forgets it
}
