// SPDX-License-Identifier: Apache-2.0
//
// Launches of the host's kernels. Their tasks are coarse, so that the indirect call of each costs
// nothing, and files with kernels need no header of Kokkos.
#pragma once

#include <cstdint>

#include "kernels/Exec.hpp"

namespace taper::detail {

// A function (context, i) and its context.
struct HostTask {
  void (*call)(const void* context, std::int64_t i);
  const void* context;
};

template <class F>
HostTask host_task(const F& f) {
  return {[](const void* context, std::int64_t i) { (*static_cast<const F*>(context))(i); }, &f};
}

enum class TaskOrder {
  kEqualParts,  // each thread has as many as the others
  kAsTheyEnd,   // threads take the next as they get free: for tasks of very different lengths
};
// task(i) for i in [0, n) on all threads; returns when all are done.
void run_on_host(const char* label, std::int64_t n, HostTask task, TaskOrder order);

template <class F>
void for_each(const char* label, const HostExec&, std::int64_t n, const F& f) {
  run_on_host(label, n, host_task(f), TaskOrder::kEqualParts);
}

template <class F>
void for_each_uneven(const char* label, const HostExec&, std::int64_t n, const F& f) {
  run_on_host(label, n, host_task(f), TaskOrder::kAsTheyEnd);
}

}  // namespace taper::detail
