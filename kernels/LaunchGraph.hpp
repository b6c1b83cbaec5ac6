// SPDX-License-Identifier: Apache-2.0
//
// Launches that are recorded once and then repeated by one call: a CUDA graph. For devices; on the
// host a launch is a call.
#pragma once

#if defined(TAPER_CUDA)
#include <functional>
#include <memory>

#include "kernels/Exec.hpp"

struct CUgraphExec_st;

namespace taper {

// What a function launches, with the addresses and sizes that it was recorded with. The values at
// these addresses may change between one launch of the graph and the next.
class LaunchGraph {
 public:
  // Calls `launches`; nothing that it launches runs now. It must have run before, since the first
  // launch of a kernel may allocate, and must not wait. Throws Error if it does.
  LaunchGraph(const CudaExec& exec, const std::function<void()>& launches);

  void launch(const CudaExec& exec) const;
  // Kernels, copies and exchanges of one launch.
  int size() const { return size_; }

 private:
  struct Destroy {
    void operator()(CUgraphExec_st* graph) const;
  };

  std::unique_ptr<CUgraphExec_st, Destroy> graph_;
  int size_ = 0;
};

}  // namespace taper
#endif
