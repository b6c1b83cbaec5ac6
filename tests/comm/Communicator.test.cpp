// SPDX-License-Identifier: Apache-2.0
//
// Communicators of NCCL and what is exchanged through them (nccl/Transport.hpp).
#include "comm/nccl/Communicator.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "comm/GroupCache.hpp"
#include "comm/Progress.hpp"
#include "comm/nccl/Transport.hpp"

using namespace taper;

namespace {

// Floats in the memory of the GPU.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values) : size_(values.size()) {
    REQUIRE(cudaMalloc(&data_, size_ * sizeof(float) + 4) == cudaSuccess);
    REQUIRE(cudaMemcpy(data_, values.data(), size_ * sizeof(float), cudaMemcpyHostToDevice) ==
            cudaSuccess);
  }
  explicit DeviceFloats(std::int64_t size)
      : DeviceFloats(std::vector<float>(static_cast<std::size_t>(size), -1.0f)) {}
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  ~DeviceFloats() { cudaFree(data_); }

  float* data() const { return static_cast<float*>(data_); }
  std::vector<float> values() const {
    std::vector<float> host(size_);
    REQUIRE(cudaMemcpy(host.data(), data_, size_ * sizeof(float), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    return host;
  }

 private:
  std::size_t size_;
  void* data_ = nullptr;
};

// Element i of what rank `from` sends to rank `to`.
float element(int from, int to, std::int64_t i) {
  return static_cast<float>(10000 * from + 1000 * to + i % 900);
}

void check_exchanges(const Group& group) {
  REQUIRE(group.devices() != nullptr);
  const int me = group.rank(), n = group.size();
  // Equal and uneven parts, parts of several letters, and none.
  for (const std::int64_t length : {3, 50000})
    for (const bool even : {true, false}) {
      const auto count = [&](int rank) { return even ? length : length * (rank % 3); };
      std::vector<std::int64_t> counts;
      std::vector<float> mine, all;
      for (int r = 0; r < n; ++r) counts.push_back(count(r));
      for (std::int64_t i = 0; i < count(me); ++i) mine.push_back(element(me, 0, i));
      for (int r = 0; r < n; ++r)
        for (std::int64_t i = 0; i < count(r); ++i) all.push_back(element(r, 0, i));
      const DeviceFloats in(mine), out(static_cast<std::int64_t>(all.size()));
      nccl::all_gather_v(group, nullptr, out.data(), in.data(), counts);
      CHECK(out.values() == all);

      std::vector<std::int64_t> sizes(static_cast<std::size_t>(n), count(me));
      std::vector<float> letters, wanted;
      for (int r = 0; r < n; ++r)
        for (std::int64_t i = 0; i < count(me); ++i) letters.push_back(element(me, r, i));
      for (int r = 0; r < n; ++r)
        for (std::int64_t i = 0; i < count(r); ++i) wanted.push_back(element(r, me, i));
      const DeviceFloats to(letters), from(static_cast<std::int64_t>(wanted.size()));
      nccl::all_to_all_v(group, nullptr, from.data(), counts, to.data(), sizes);
      CHECK(from.values() == wanted);
    }
  std::vector<float> largest;
  for (int i = 0; i < 3000; ++i) largest.push_back(static_cast<float>(i % n == me ? i : -i));
  const DeviceFloats data(largest);
  nccl::all_reduce_max(group, nullptr, data.data(), 3000);
  for (int i = 0; i < 3000; ++i) largest[static_cast<std::size_t>(i)] = static_cast<float>(i);
  CHECK(data.values() == (n > 1 ? largest : data.values()));
}

}  // namespace

TEST_CASE("GPUs of all groups exchange data") {
  Progress progress;
  GroupOptions options;
  options.progress = &progress;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const DivisorChain chain = DivisorChain::of(ranks);
  GroupCache groups = GroupCache::for_chain(MPI_COMM_WORLD, chain, options);
  CHECK(groups.world().devices() == nullptr);
  REQUIRE(nccl::problem(groups.world()).empty());
  groups.connect_devices(nccl::Communicator::create(groups.world()));
  for (const int degree : chain.degrees())
    for (const Group* group : {&groups.tp_group(degree), &groups.dp_group(degree)})
      if (!group->is_null()) check_exchanges(*group);
  CHECK(progress.watched_problem(1e9).empty());
}
