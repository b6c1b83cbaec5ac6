// SPDX-License-Identifier: Apache-2.0
#include "kernels/LaunchGraph.hpp"

#include "base/CudaCall.hpp"

namespace taper {

LaunchGraph::LaunchGraph(const CudaExec& exec, const std::function<void()>& launches) {
  // What other threads (the watchdog) ask the runtime meanwhile is no part of it.
  require_cuda(cudaStreamBeginCapture(exec.stream(), cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture");
  cudaGraph_t recorded = nullptr;
  try {
    launches();
  } catch (...) {
    cudaStreamEndCapture(exec.stream(), &recorded);
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    throw;
  }
  require_cuda(cudaStreamEndCapture(exec.stream(), &recorded), "cudaStreamEndCapture");
  std::size_t nodes = 0;
  require_cuda(cudaGraphGetNodes(recorded, nullptr, &nodes), "cudaGraphGetNodes");
  size_ = static_cast<int>(nodes);
  cudaGraphExec_t graph = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&graph, recorded, 0);
  cudaGraphDestroy(recorded);
  require_cuda(made, "cudaGraphInstantiate");
  graph_.reset(graph);
}

void LaunchGraph::launch(const CudaExec& exec) const {
  require_cuda(cudaGraphLaunch(graph_.get(), exec.stream()), "cudaGraphLaunch");
}

void LaunchGraph::Destroy::operator()(CUgraphExec_st* graph) const {
  cudaGraphExecDestroy(graph);
}

}  // namespace taper
