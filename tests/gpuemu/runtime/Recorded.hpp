// SPDX-License-Identifier: Apache-2.0
//
// For stand-ins of other libraries: operations of their own in graphs. No part of CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

extern "C" {

// Adds an operation to the graph that the stream is captured into. It runs as soon as such a graph
// is launched, since operations of other processes may wait for it. `data` must stay for as long as
// the graph.
void cudaGpuemuRecord(cudaStream_t stream, const char* name, void (*run)(void* data), void* data);

// Within such an operation: copies between the host and the device.
void cudaGpuemuCopy(void* to, const void* from, std::size_t bytes);

}  // extern "C"
