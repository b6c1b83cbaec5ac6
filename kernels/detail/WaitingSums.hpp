// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/detail/LeafPlan.hpp"

namespace taper::detail {

#if defined(__CUDA_ARCH__)

// The sums of a thread's tiles that wait to be added to later ones: the latest in register number
// latest_, those before it in the registers below, 0 being above the last; older ones in shared
// memory, and the oldest in local memory.
template <class T, int tiles>
class WaitingSums {
 public:
  using Sums = float[tiles][4];
  // No member: an array of which any element may be meant would take all others to memory, too.
  using Local = Sums[T::kMostLocal > 0 ? T::kMostLocal : 1];

  // `shared`: of this thread; the next sum of all threads is `threads` floats behind, and so on.
  __device__ WaitingSums(float* shared, int threads, Local& local)
      : shared_(shared), threads_(threads), local_(local) {}

  __device__ int all() const { return waiting_.all(); }

  // Ends a leaf: its sums are added to so many that wait, one by one, and wait themselves.
  __device__ void add(int additions, const Sums& sums) {
    if (additions == 0) {
      push(sums);
      return;
    }
    with_latest(
        [&](Sums& latest, Sums&) { for_sums([&](int t, int i) { latest[t][i] += sums[t][i]; }); });
    for (int n = 1; n < additions; ++n) join();
  }

  // f(the latest).
  template <class F>
  __device__ void with_latest_sums(const F& f) {
    with_latest([&](const Sums& latest, Sums&) { f(latest); });
  }
  // f(p, sums) for all that wait, the oldest being number 0. None waits afterwards.
  template <class F>
  __device__ void take_all(const F& f) {
    for (int p = 0; p < waiting_.in_memory; ++p) {
      Sums sums;
      with_memory(p, [&](int t, int i, float sum) { sums[t][i] = sum; });
      f(p, sums);
    }
    for (int p = waiting_.all(); p > waiting_.in_memory; latest_ = before_latest()) {
      --p;
      with_latest([&](const Sums& latest, Sums&) { f(p, latest); });
    }
    waiting_ = {};
  }

  // f(t, i) for the sums of this thread.
  template <class F>
  __device__ static void for_sums(const F& f) {
#pragma unroll
    for (int t = 0; t < tiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) f(t, i);
  }

 private:
  static constexpr int kRegisters = T::kRegisters;
  __device__ int before_latest() const {
    return latest_ > 0 ? latest_ - 1 : kRegisters - 1;
  }

  __device__ void push(const Sums& sums) {
    latest_ = latest_ + 1 < kRegisters ? latest_ + 1 : 0;
    if (waiting_.in_registers == kRegisters) {  // the oldest makes room
      Sums oldest;
      with_latest([&](Sums& latest, Sums&) {
        for_sums([&](int t, int i) { oldest[t][i] = latest[t][i]; });
      });
      with_memory(waiting_.in_memory, [&](int t, int i, float& sum) { sum = oldest[t][i]; });
    }
    with_latest([&](Sums& latest, Sums&) {
      for_sums([&](int t, int i) { latest[t][i] = 0.0f + sums[t][i]; });  // never -0
    });
    waiting_.push();
  }
  // The latest two become one.
  __device__ void join() {
    const bool in_registers = waiting_.in_registers > 1;
    waiting_.join();
    if (in_registers) {
      with_latest([&](Sums& latest, Sums& before) {
        for_sums([&](int t, int i) { before[t][i] += latest[t][i]; });
      });
      latest_ = before_latest();
    } else {
      Sums before;
      with_memory(waiting_.in_memory, [&](int t, int i, float sum) { before[t][i] = sum; });
      with_latest([&](Sums& latest, Sums&) {
        for_sums([&](int t, int i) { latest[t][i] = before[t][i] + latest[t][i]; });
      });
    }
  }

  // f(the register of the latest, the one of the sums before it).
  template <int i = 0, class F>
  __device__ void with_latest(const F& f) {
    if (i + 1 == kRegisters || i == latest_) {
      f(registers_[i], registers_[(i + kRegisters - 1) % kRegisters]);
      // Keeps the compiler from making one instruction of those of all registers, and moves for it.
      asm volatile("// register %0" ::"n"(i));
    } else if constexpr (i + 1 < kRegisters) {
      with_latest<i + 1>(f);
    }
  }
  // f(t, i, the sum that waits in memory at this depth).
  template <class F>
  __device__ void with_memory(int depth, const F& f) {
    if (T::kMostLocal > 0 && depth >= T::kMostShared) {
      for_sums([&](int t, int i) { f(t, i, local_[depth - T::kMostShared][t][i]); });
    } else {
      float* const sums = shared_ + depth * 4 * tiles * threads_;
      for_sums([&](int t, int i) { f(t, i, sums[(4 * t + i) * threads_]); });
    }
  }

  float* shared_;
  const int threads_;
  Sums* local_;
  WaitingLeaves<kRegisters> waiting_;
  Sums registers_[kRegisters];
  int latest_ = kRegisters - 1;
};

#endif

}  // namespace taper::detail
