// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/Transport.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <vector>

#include "base/CudaCall.hpp"
#include "base/Error.hpp"
#include "comm/Audit.hpp"
#include "comm/nccl/Communicator.hpp"
#include "comm/nccl/Library.hpp"

namespace taper::nccl {
namespace {

// Runs f within a group of NCCL calls, which then begin together.
template <class F>
void together(const Group& group, CUstream_st* stream, const F& f) {
  TAPER_EXPECT(group.connects_devices());
  require(library().group_start(), "ncclGroupStart");
  f(group.devices()->get());
  require(library().group_end(), "ncclGroupEnd");
  group.devices()->mark(stream);
}

void send_and_receive(const Group& group, CUstream_st* stream, std::span<const Stretch> received,
                      std::span<const Stretch> sent) {
  together(group, stream, [&](ncclComm_t comm) {
    for (const Stretch& s : sent)
      if (s.count > 0)
        require(library().send(s.data, static_cast<std::size_t>(s.count), ncclFloat, s.rank, comm,
                               stream),
                "ncclSend");
    for (const Stretch& s : received)
      if (s.count > 0)
        require(library().receive(const_cast<float*>(s.data), static_cast<std::size_t>(s.count),
                                  ncclFloat, s.rank, comm, stream),
                "ncclRecv");
  });
}

std::int64_t sum_before(std::span<const std::int64_t> counts, int r) {
  return std::accumulate(counts.begin(), counts.begin() + r, std::int64_t{0});
}

}  // namespace

void all_gather_v(const Group& group, CUstream_st* stream, float* out, const float* in,
                  std::span<const std::int64_t> counts) {
  const detail::CollectiveScope scope(group, "nccl::all_gather_v",
                                      sum_before(counts, group.size()));
  if (std::all_of(counts.begin(), counts.end(), [&](auto n) { return n == counts[0]; })) {
    together(group, stream, [&](ncclComm_t comm) {
      require(library().all_gather(in, out, static_cast<std::size_t>(counts[0]), ncclFloat, comm,
                                   stream),
              "ncclAllGather");
    });
    return;
  }
  std::vector<Stretch> received, sent;
  for (int r = 0; r < group.size(); ++r) {
    received.push_back({r, out + sum_before(counts, r), counts[r]});
    sent.push_back({r, in, counts[group.rank()]});
  }
  send_and_receive(group, stream, received, sent);
}

void all_to_all_v(const Group& group, CUstream_st* stream, float* out,
                  std::span<const std::int64_t> out_counts, const float* in,
                  std::span<const std::int64_t> in_counts) {
  std::vector<Stretch> received, sent;
  for (int r = 0; r < group.size(); ++r) {
    received.push_back({r, out + sum_before(out_counts, r), out_counts[r]});
    sent.push_back({r, in + sum_before(in_counts, r), in_counts[r]});
  }
  exchange(group, "nccl::all_to_all_v", stream, received, sent);
}

void exchange(const Group& group, const char* name, CUstream_st* stream,
              std::span<const Stretch> received, std::span<const Stretch> sent) {
  const detail::CollectiveScope scope(group, name, -1);
  send_and_receive(group, stream, received, sent);
}

void all_reduce_max(const Group& group, CUstream_st* stream, float* data, std::int64_t count) {
  const detail::CollectiveScope scope(group, "nccl::all_reduce_max", count);
  together(group, stream, [&](ncclComm_t comm) {
    require(library().all_reduce(data, data, static_cast<std::size_t>(count), ncclFloat, ncclMax,
                                 comm, stream),
            "ncclAllReduce");
  });
}

void warm_up(const Group& group) {
  const auto n = static_cast<std::size_t>(group.size());
  void* p = nullptr;
  require_cuda(cudaMalloc(&p, 2 * n * sizeof(float)), "cudaMalloc");
  // To free it would wait for what may never end, while an exception flies.
  const auto release = [](void* memory) {
    if (std::uncaught_exceptions() == 0) cudaFree(memory);
  };
  const std::unique_ptr<void, decltype(release)> memory(p, release);
  float *const in = static_cast<float*>(p), *const out = in + n;
  require_cuda(cudaMemset(p, 0, 2 * n * sizeof(float)), "cudaMemset");
  const std::vector<std::int64_t> ones(n, 1);
  all_gather_v(group, nullptr, out, in, ones);
  all_to_all_v(group, nullptr, out, ones, in, ones);
  all_reduce_max(group, nullptr, out, 1);
  require_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

}  // namespace taper::nccl
