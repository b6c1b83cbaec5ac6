// SPDX-License-Identifier: Apache-2.0
#include "comm/peers/Windows.hpp"

#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "comm/Collectives.hpp"
#include "comm/GroupCache.hpp"
#include "comm/nccl/Communicator.hpp"

using namespace taper;

namespace {

std::vector<unsigned> read(const void* from, std::size_t count) {
  std::vector<unsigned> words(count);
  REQUIRE(cudaMemcpy(words.data(), from, count * sizeof(unsigned), cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  return words;
}

}  // namespace

TEST_CASE("each rank writes into the windows of all others") {
  const Group world = Group::world(MPI_COMM_WORLD);
  std::string problem = "not tried";
  const auto windows = peers::Windows::connect(world, problem);
  CHECK(problem.empty());
  REQUIRE(windows != nullptr);
  const auto ranks = static_cast<std::size_t>(world.size());
  float* const mine = windows->window(world.rank());
  CHECK(read(mine, 100) == std::vector<unsigned>(100, 0xffffffffu));
  CHECK(read(mine + 3 * peers::Windows::kPartFloats - 1, 1).front() == 0xffffffffu);
  CHECK(read(windows->state(), 8) == std::vector<unsigned>(8, 0));
  barrier(world);
  for (int r = 0; r < world.size(); ++r) {
    const auto value = static_cast<unsigned>(100 * world.rank() + r);
    REQUIRE(cudaMemcpy(windows->window(r) + world.rank(), &value, sizeof value,
                       cudaMemcpyHostToDevice) == cudaSuccess);
  }
  barrier(world);
  std::vector<unsigned> expected;
  for (std::size_t r = 0; r < ranks; ++r)
    expected.push_back(static_cast<unsigned>(100 * r) + static_cast<unsigned>(world.rank()));
  CHECK(read(mine, ranks) == expected);
  barrier(world);
}

TEST_CASE("tensor-parallel groups of a host have windows once their GPUs are connected") {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const DivisorChain chain = DivisorChain::of(ranks);
  GroupCache groups = GroupCache::for_chain(MPI_COMM_WORLD, chain);
  CHECK(groups.connect_devices(nccl::Communicator::create(groups.world())).empty());
  for (const int degree : chain.degrees())
    CHECK((groups.tp_group(degree).windows() != nullptr) == (degree > 1));
}

TEST_CASE("if one rank cannot reach the others, none has windows, and all know why") {
  const Group world = Group::world(MPI_COMM_WORLD);
  if (world.is_null()) return;
  const auto connect = [&] {
    std::string problem;
    const auto windows = peers::Windows::connect(world, problem);
    CHECK(windows == nullptr);
    return problem;
  };
  cudaDeviceProp device{};
  REQUIRE(cudaGetDeviceProperties(&device, 0) == cudaSuccess);
  if (device.name == std::string("PTX on the host")) {  // a GPU cannot be asked to fail
    setenv("GPUEMU_PEER_FAULT", "1:open", 1);
    CHECK(connect().rfind("rank 1: cudaIpcOpenMemHandle: ", 0) == 0);
    unsetenv("GPUEMU_PEER_FAULT");
  }
  if (world.rank() == 0) setenv("TAPER_PEER_SUMS", "no", 1);
  CHECK(connect() == "rank 0: TAPER_PEER_SUMS is no");
  unsetenv("TAPER_PEER_SUMS");
}

TEST_CASE("windows move with their group") {
  Group world = Group::world(MPI_COMM_WORLD);
  std::string problem;
  world.connect(peers::Windows::connect(world, problem));
  REQUIRE(world.windows() != nullptr);
  const Group moved = std::move(world);
  CHECK(moved.windows() != nullptr);
}
