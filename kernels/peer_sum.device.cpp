// SPDX-License-Identifier: Apache-2.0
#include "kernels/peer_sum.hpp"

#include <algorithm>
#include <numeric>

#include "base/CudaCall.hpp"
#include "base/Error.hpp"
#include "kernels/detail/DeviceLaunch.hpp"
#include "kernels/detail/TreeProgram.hpp"

namespace taper {
namespace {

constexpr int kThreads = 256;
// Where nothing has come yet: a NaN that is never sent. So each value says itself that it is there,
// and no fence orders it with a flag.
constexpr unsigned kNothing = 0xffffffffu;
constexpr unsigned kOtherNan = 0x7fffffffu;

struct PeerSum {
  PeerWindows peers;
  detail::TreeProgram program;
  const float* residual;  // may be null
  const float* partials;
  float* out;
  std::int64_t n;
  int first, count;  // this rank's partial sums among all
};

#if defined(__CUDACC__)

__device__ void put(float* to, unsigned bits) {
  *reinterpret_cast<volatile unsigned*>(to) = bits;
}
__device__ float await(const float* from) {
  const auto* const at = reinterpret_cast<const volatile unsigned*>(from);
  unsigned bits = *at;
  while (bits == kNothing) {
    __nanosleep(20);
    bits = *at;
  }
  return __uint_as_float(bits);
}

// A part of a window is cleared in the sum after the one that used it, and used again two sums
// later, which another rank begins only after it has got this one's values of the sum in between:
// those are sent when the clearing kernel has ended. That they cannot overtake it rests on the end
// of a kernel, and on the home of all these writes being one memory. All blocks must be on the GPU
// at the same time, since each waits for those of other ranks before it ends.
__global__ void __launch_bounds__(kThreads) add_over_peers(const __grid_constant__ PeerSum sum) {
  const PeerWindows& peers = sum.peers;
  PeerTurns& turns = *peers.turns;
  const int part = static_cast<int>(turns.part), before = (part + kPeerParts - 1) % kPeerParts;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x,
                     threads = std::int64_t{gridDim.x} * kThreads;
  const auto place = [&](int rank, int of, std::int64_t value) {
    return peers.windows[rank] + of * peers.part_floats + value;
  };
  for (std::int64_t i = thread; i < sum.count * sum.n; i += threads) {
    unsigned bits = __float_as_uint(sum.partials[i]);
    if (bits == kNothing) bits = kOtherNan;
    for (int k = 1; k < peers.ranks; ++k)  // each rank begins with another one
      put(place((peers.rank + k) % peers.ranks, part, sum.first * sum.n + i), bits);
  }
  for (std::int64_t i = thread; i < turns.used[before]; i += threads)
    put(place(peers.rank, before, i), kNothing);
  for (std::int64_t element = thread; element < sum.n; element += threads) {
    const float total = sum.program.run([&](int i) {
      const bool is_mine = i >= sum.first && i < sum.first + sum.count;
      return is_mine ? sum.partials[(i - sum.first) * sum.n + element]
                     : await(place(peers.rank, part, i * sum.n + element));
    });
    sum.out[element] = sum.residual == nullptr ? total : sum.residual[element] + total;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();
  if (atomicAdd(&turns.arrived, 1u) + 1 < gridDim.x) return;
  __threadfence();
  turns.arrived = 0;
  turns.used[part] = static_cast<unsigned>(sum.program.size * sum.n);
  turns.part = static_cast<unsigned>((part + 1) % kPeerParts);
}

#endif

}  // namespace

void peer_sum(const CudaExec& exec, VectorView<float, CudaExec> out, const float* residual,
              const float* partials, std::span<const int> counts, std::span<const int> program,
              const PeerWindows& peers) {
  // A rank that sends nothing would not be waited for, and could be two sums ahead.
  TAPER_INSIST(std::ssize(counts) == peers.ranks && std::ranges::min(counts) > 0 &&
                   std::accumulate(counts.begin(), counts.end(), 0) == std::ssize(program),
               "a sum over " << peers.ranks << " GPUs whose partial results are not those of all");
  PeerSum sum{peers,      detail::tree_program(program),         residual, partials,
              out.data(), static_cast<std::int64_t>(out.size()), 0,        counts[peers.rank]};
  for (int r = 0; r < peers.rank; ++r) sum.first += counts[r];
  TAPER_INSIST(sum.program.size * sum.n <= peers.part_floats,
               "a sum of " << sum.program.size * sum.n << " values over GPUs (a window has "
                           << peers.part_floats << ")");
  if (sum.n == 0) return;
  const Kokkos::Cuda space = detail::kokkos_space(exec);
  const std::int64_t most = space.cuda_device_prop().multiProcessorCount,
                     blocks = std::min(most, (sum.count * sum.n + kThreads - 1) / kThreads);
  void* arguments[] = {&sum};
  require_cuda(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&add_over_peers),
                                           dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                                           arguments, 0, space.cuda_stream()),
               "a sum over GPUs");
}

}  // namespace taper
