// SPDX-License-Identifier: Apache-2.0
#include "kernels/LaunchGraph.hpp"

#include <cuda_runtime_api.h>

#include "base/Error.hpp"

namespace taper {
namespace {

void require(cudaError_t code, const char* call) {
  TAPER_INSIST(code == cudaSuccess,
               call << " failed while launches were recorded: " << cudaGetErrorString(code));
}

}  // namespace

LaunchGraph::LaunchGraph(const CudaExec& exec, const std::function<void()>& launches) {
  // What other threads (the watchdog) ask the runtime meanwhile is no part of it.
  require(cudaStreamBeginCapture(exec.stream(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  cudaGraph_t recorded = nullptr;
  try {
    launches();
  } catch (...) {
    cudaStreamEndCapture(exec.stream(), &recorded);
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    throw;
  }
  require(cudaStreamEndCapture(exec.stream(), &recorded), "cudaStreamEndCapture");
  std::size_t nodes = 0;
  require(cudaGraphGetNodes(recorded, nullptr, &nodes), "cudaGraphGetNodes");
  size_ = static_cast<int>(nodes);
  cudaGraphExec_t graph = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&graph, recorded, 0);
  cudaGraphDestroy(recorded);
  require(made, "cudaGraphInstantiate");
  graph_.reset(graph);
}

void LaunchGraph::launch(const CudaExec& exec) const {
  const cudaError_t code = cudaGraphLaunch(graph_.get(), exec.stream());
  TAPER_INSIST(code == cudaSuccess, "cudaGraphLaunch failed: " << cudaGetErrorString(code));
}

void LaunchGraph::Destroy::operator()(CUgraphExec_st* graph) const {
  cudaGraphExecDestroy(graph);
}

}  // namespace taper
