// SPDX-License-Identifier: Apache-2.0
#include "comm/peers/Windows.hpp"

#include <cuda_runtime_api.h>

#include <cstring>
#include <exception>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "comm/Audit.hpp"
#include "comm/Collectives.hpp"
#include "comm/Group.hpp"
#include "comm/nccl/Communicator.hpp"

namespace taper::peers {
namespace {

constexpr std::size_t kWindowBytes = Windows::kParts * Windows::kPartFloats * sizeof(float);

// Empty, or what failed.
std::string problem_of(cudaError_t code, const char* call) {
  return code == cudaSuccess ? "" : std::string(call) + ": " + cudaGetErrorString(code);
}

// The first problem of a rank of the group, on all ranks; empty if there is none.
std::string first_problem(const Group& group, const std::string& mine) {
  const auto all = all_gather_string(group, mine);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty()) return "rank " + std::to_string(group.world_ranks()[r]) + ": " + all[r];
  return "";
}

// What a rank leaves in a window to be seen there: nothing that memory holds by chance.
unsigned number_of(std::size_t rank) {
  return 0x5a000000u + static_cast<unsigned>(rank);
}

}  // namespace

std::shared_ptr<const Windows> Windows::connect(const Group& group, std::string& problem) {
  TAPER_EXPECT(group.size() <= kMostRanks);
  const auto me = static_cast<std::size_t>(group.rank()),
             ranks = static_cast<std::size_t>(group.size());
  const std::shared_ptr<Windows> made(new Windows);
  made->rank_ = group.rank();
  made->windows_.assign(ranks, nullptr);
  float*& mine = made->windows_[me];
  cudaIpcMemHandle_t handle{};
  std::string failed = !is_wished("TAPER_PEER_SUMS") ? "TAPER_PEER_SUMS is no" : "";
  const auto attempt = [&](const char* call, const auto& f) {
    if (failed.empty()) failed = problem_of(f(), call);
  };
  attempt("cudaMalloc",
          [&] { return cudaMalloc(reinterpret_cast<void**>(&mine), kWindowBytes + kStateBytes); });
  attempt("cudaMemset", [&] {
    made->state_ = reinterpret_cast<char*>(mine) + kWindowBytes;
    return cudaMemset(made->state_, 0, kStateBytes);
  });
  attempt("cudaMemset", [&] { return cudaMemset(mine, 0xff, kWindowBytes); });
  attempt("cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); });
  attempt("cudaIpcGetMemHandle", [&] { return cudaIpcGetMemHandle(&handle, mine); });
  problem = first_problem(group, failed);
  if (!problem.empty()) {
    made->free_own();  // nobody has opened it
    return nullptr;
  }
  const auto handles =
      all_gather_string(group, std::string(reinterpret_cast<const char*>(&handle), sizeof handle));
  // Memory that can be opened may still not be reached: each rank leaves its number with the
  // others.
  for (std::size_t r = 0; r < ranks; ++r) {
    std::memcpy(&handle, handles[r].data(), sizeof handle);
    if (r != me)
      attempt("cudaIpcOpenMemHandle", [&] {
        void* window = nullptr;
        const cudaError_t code =
            cudaIpcOpenMemHandle(&window, handle, cudaIpcMemLazyEnablePeerAccess);
        made->windows_[r] = static_cast<float*>(window);
        return code;
      });
    attempt("cudaMemcpy", [&] {
      const unsigned number = number_of(me);
      return cudaMemcpy(made->windows_[r] + me, &number, sizeof number, cudaMemcpyHostToDevice);
    });
  }
  // A copy from the host may return before it has arrived.
  attempt("cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); });
  problem = first_problem(group, failed);
  if (!problem.empty()) {
    cudaGetLastError();  // what failed has been told
    return nullptr;
  }
  std::vector<unsigned> numbers(ranks);
  attempt("cudaMemcpy", [&] {
    return cudaMemcpy(numbers.data(), mine, ranks * sizeof(unsigned), cudaMemcpyDeviceToHost);
  });
  for (std::size_t r = 0; failed.empty() && r < ranks; ++r)
    if (numbers[r] != number_of(r))
      failed = "what the GPU of rank " + std::to_string(group.world_ranks()[r]) +
               " writes does not arrive";
  attempt("cudaMemset", [&] { return cudaMemset(mine, 0xff, ranks * sizeof(unsigned)); });
  attempt("cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); });
  problem = first_problem(group, failed);
  if (problem.empty()) return made;
  cudaGetLastError();  // what failed has been told
  return nullptr;
}

void Windows::free_own() {
  cudaFree(windows_[static_cast<std::size_t>(rank_)]);
  cudaGetLastError();
}

// The own window stays to the end of the process: other ranks may still have it open. While an
// exception flies, a kernel of this one may still wait for them.
Windows::~Windows() {
  if (std::uncaught_exceptions() > 0) return;
  for (std::size_t r = 0; r < windows_.size(); ++r)
    if (static_cast<int>(r) != rank_ && windows_[r] != nullptr) cudaIpcCloseMemHandle(windows_[r]);
}

void as_collective(const Group& group, const char* name, std::int64_t count, CUstream_st* stream,
                   const std::function<void()>& launch) {
  const detail::CollectiveScope scope(group, name, count);
  launch();
  group.devices()->mark(stream);
}

}  // namespace taper::peers
