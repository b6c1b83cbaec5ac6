// SPDX-License-Identifier: Apache-2.0
//
// Streams, events, capture and graphs, with the rules of capture.
#include "gpuemu/runtime/Recorded.hpp"
#include "gpuemu/runtime/Runtime.hpp"

using namespace taper::gpuemu;

namespace taper::gpuemu {
Stream* stream_of(cudaStream_t stream);
}

namespace {

Event* event_of(cudaEvent_t event) {
  return reinterpret_cast<Event*>(event);
}

cudaError_t broken(Runtime& r, Stream* stream) {
  stream->is_capture_broken = true;
  return r.fail(cudaErrorStreamCaptureUnsupported);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return guarded([&](Runtime& r) {
    r.note_allocation("cudaStreamCreate");
    *stream =
        reinterpret_cast<cudaStream_t>(r.queue.create_stream((flags & cudaStreamNonBlocking) == 0));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return guarded(
      [&](Runtime& r) { return r.queue.destroy_stream(stream_of(stream)), cudaSuccess; });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return guarded([&](Runtime& r) {
    Stream* s = stream_of(stream);
    if (s->capture != nullptr) return broken(r, s);
    if (s == &r.queue.legacy() && r.queue.is_any_captured())
      return r.fail(cudaErrorStreamCaptureImplicit);
    r.queue.finish(*s);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return cudaStreamSynchronize(stream);
}
cudaError_t cudaDeviceSynchronize() {
  return guarded([&](Runtime& r) {
    if (r.queue.is_any_captured()) return r.fail(cudaErrorStreamCaptureUnsupported);
    r.queue.finish_all();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetDevice(cudaStream_t, int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return guarded(
      [&](Runtime& r) { return r.queue.wait(*stream_of(stream), *event_of(event)), cudaSuccess; });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return guarded([&](Runtime& r) {
    r.note_allocation("cudaEventCreate");
    *event = reinterpret_cast<cudaEvent_t>(new Event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return guarded([&](Runtime&) { return delete event_of(event), cudaSuccess; });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return guarded([&](Runtime& r) {
    return r.queue.record(*event_of(event), *stream_of(stream)), cudaSuccess;
  });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return guarded([&](Runtime& r) {
    if (event_of(event)->capture != nullptr) return r.fail(cudaErrorCapturedEvent);
    if (r.queue.is_any_captured()) return r.fail(cudaErrorStreamCaptureUnsupported);
    r.queue.finish(event_of(event)->operation);
    return cudaSuccess;
  });
}
// While another thread runs operations the device is busy.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::unique_lock lock(Runtime::get().mutex, std::try_to_lock);
  return lock ? cudaEventSynchronize(event) : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return guarded([&](Runtime&) {
    *milliseconds = static_cast<float>((*event_of(end)->seconds - *event_of(start)->seconds) * 1e3);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return guarded([&](Runtime& r) {
    Stream* s = stream_of(stream);
    if (s == &r.queue.legacy()) return r.fail(cudaErrorStreamCaptureUnsupported);
    if (s->capture != nullptr) return r.fail(cudaErrorIllegalState);
    r.queue.begin_capture(*s);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return guarded([&](Runtime& r) {
    Stream* s = stream_of(stream);
    *graph = nullptr;
    if (s->capture == nullptr) return r.fail(cudaErrorIllegalState);
    if (!s->is_capture_origin) return r.fail(cudaErrorStreamCaptureUnmatched);
    bool is_unjoined = false;
    Graph* g = r.queue.end_capture(*s, is_unjoined);
    if (g == nullptr)
      return r.fail(is_unjoined ? cudaErrorStreamCaptureUnjoined
                                : cudaErrorStreamCaptureInvalidated);
    *graph = reinterpret_cast<cudaGraph_t>(g);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return guarded([&](Runtime&) {
    const Stream* s = stream_of(stream);
    *status = s->capture == nullptr  ? cudaStreamCaptureStatusNone
              : s->is_capture_broken ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return guarded([&](Runtime& r) {
    r.note_allocation("cudaGraphInstantiate");
    *exec = reinterpret_cast<cudaGraphExec_t>(new GraphExec{*reinterpret_cast<Graph*>(graph), {}});
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return guarded([&](Runtime& r) {
    Stream* s = stream_of(stream);
    if (s->capture != nullptr) return broken(r, s);  // graphs within graphs are not modeled
    r.queue.launch(*reinterpret_cast<GraphExec*>(exec), *s);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* nodes) {
  *nodes = reinterpret_cast<Graph*>(graph)->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return guarded([&](Runtime&) { return delete reinterpret_cast<Graph*>(graph), cudaSuccess; });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return guarded([&](Runtime& r) {
    r.queue.finish_all();
    delete reinterpret_cast<GraphExec*>(exec);
    return cudaSuccess;
  });
}

void cudaGpuemuRecord(cudaStream_t stream, const char* name, void (*run)(void*), void* data) {
  guarded([&](Runtime& r) {
    Work work{name, [&r, run, data] {
                return [&r, run, data](std::uint32_t number) {
                  r.running = number;
                  run(data);
                };
              }};
    work.runs_at_once = true;
    r.queue.add(*stream_of(stream), std::move(work));
  });
}
void cudaGpuemuCopy(void* to, const void* from, std::size_t bytes) {
  guarded([&](Runtime& r) {
    const DevicePool::Opened opened(r.pool);
    r.run_copy(to, from, bytes, r.running);
  });
}

// Graphs that are built node by node (Kokkos::Graph) are not modeled.
cudaError_t cudaGraphCreate(cudaGraph_t*, unsigned) {
  return cudaErrorNotSupported;
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t) {
  return cudaErrorNotSupported;
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                     const cudaGraphEdgeData*, size_t) {
  return cudaErrorNotSupported;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                   const cudaKernelNodeParams*) {
  return cudaErrorNotSupported;
}

}  // extern "C"
