// SPDX-License-Identifier: Apache-2.0
//
// Allocations, copies and symbols.
#include <unistd.h>

#include <cstring>

#include "gpuemu/runtime/Runtime.hpp"

using namespace taper::gpuemu;

namespace taper::gpuemu {
Stream* stream_of(cudaStream_t stream);
}

namespace {

// Calls that wait for the device break a capture.
cudaError_t refuse_in_capture(Runtime& r, Stream* stream) {
  if (stream->capture == nullptr && !r.queue.is_any_captured()) return cudaSuccess;
  if (stream->capture != nullptr) stream->is_capture_broken = true;
  return r.fail(cudaErrorStreamCaptureUnsupported);
}

cudaError_t allocate(void** p, std::size_t bytes, Allocation::Kind kind, const char* name) {
  return guarded([&](Runtime& r) {
    r.note_allocation(name);
    if (const cudaError_t e = refuse_in_capture(r, &r.queue.legacy())) return e;
    *p = r.allocate(bytes, kind);
    return *p == nullptr ? r.fail(cudaErrorMemoryAllocation) : cudaSuccess;
  });
}

cudaError_t release(void* p, const char* name) {
  if (p == nullptr) return cudaSuccess;
  return guarded([&](Runtime& r) {
    r.note_allocation(name);
    return r.release(p) ? cudaSuccess : r.fail(cudaErrorInvalidValue);
  });
}

// Copies of the default stream, after which the host goes on.
cudaError_t copy_now(void* to, const void* from, std::size_t bytes) {
  return guarded([&](Runtime& r) {
    Stream* s = &r.queue.legacy();
    if (const cudaError_t e = refuse_in_capture(r, s)) return e;
    const cudaError_t e = r.copy(to, from, bytes, s, "cudaMemcpy");
    r.queue.finish(*s);
    return e;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** p, size_t bytes) {
  return allocate(p, bytes, Allocation::Kind::kDevice, "cudaMalloc");
}
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t) {
  return allocate(p, bytes, Allocation::Kind::kDevice, "cudaMallocAsync");
}
cudaError_t cudaMallocManaged(void** p, size_t bytes, unsigned) {
  return allocate(p, bytes, Allocation::Kind::kPinned, "cudaMallocManaged");
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  return allocate(p, bytes, Allocation::Kind::kPinned, "cudaHostAlloc");
}
cudaError_t cudaMallocHost(void** p, size_t bytes) {
  return allocate(p, bytes, Allocation::Kind::kPinned, "cudaMallocHost");
}
cudaError_t cudaFree(void* p) {
  return release(p, "cudaFree");
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t) {
  return release(p, "cudaFreeAsync");
}
cudaError_t cudaFreeHost(void* p) {
  return release(p, "cudaFreeHost");
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* p) {
  return guarded([&](Runtime& r) {
    const DevicePool::Handle found = r.pool.handle_of(p);
    if (found.bytes == 0) return r.fail(cudaErrorInvalidValue);
    static_assert(sizeof found <= sizeof *handle);
    std::memcpy(handle, &found, sizeof found);
    return cudaSuccess;
  });
}
cudaError_t cudaIpcOpenMemHandle(void** p, cudaIpcMemHandle_t handle, unsigned) {
  return guarded([&](Runtime& r) {
    if (has_peer_fault("open")) return r.fail(cudaErrorPeerAccessUnsupported);
    DevicePool::Handle piece{};
    std::memcpy(&piece, &handle, sizeof piece);
    if (piece.process == getpid()) return r.fail(cudaErrorDeviceUninitialized);
    *p = DevicePool::map(piece);
    if (*p == nullptr) return r.fail(cudaErrorMapBufferObjectFailed);
    r.peer_pieces[*p] = piece;
    r.machine.memory.add(*p, piece.bytes, Allocation::Kind::kPeer);
    return cudaSuccess;
  });
}
cudaError_t cudaIpcCloseMemHandle(void* p) {
  return guarded([&](Runtime& r) {
    const auto found = r.peer_pieces.find(p);
    if (found == r.peer_pieces.end()) return r.fail(cudaErrorInvalidValue);
    r.queue.finish_all();
    r.machine.memory.remove(p);
    DevicePool::unmap(p, found->second);
    r.peer_pieces.erase(found);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return copy_now(to, from, bytes);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return guarded(
      [&](Runtime& r) { return r.copy(to, from, bytes, stream_of(stream), "cudaMemcpyAsync"); });
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return guarded([&](Runtime& r) { return r.fill(to, value, bytes, &r.queue.legacy()); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return guarded([&](Runtime& r) { return r.fill(to, value, bytes, stream_of(stream)); });
}

cudaError_t cudaGetSymbolAddress(void** p, const void* symbol) {
  return guarded([&](Runtime& r) {
    std::size_t bytes = 0;
    *p = r.variable(symbol, bytes);
    return *p == nullptr ? r.fail(cudaErrorInvalidSymbol) : cudaSuccess;
  });
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, cudaMemcpyKind, cudaStream_t stream) {
  return guarded([&](Runtime& r) {
    std::size_t room = 0;
    std::uint8_t* to = r.variable(symbol, room);
    if (to == nullptr || offset + bytes > room) return r.fail(cudaErrorInvalidSymbol);
    return r.copy(to + offset, from, bytes, stream_of(stream), "cudaMemcpyToSymbolAsync");
  });
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  const cudaError_t e = cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, nullptr);
  return e != cudaSuccess
             ? e
             : guarded([](Runtime& r) { return r.queue.finish(r.queue.legacy()), cudaSuccess; });
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind) {
  return guarded([&](Runtime& r) {
    std::size_t room = 0;
    std::uint8_t* from = r.variable(symbol, room);
    if (from == nullptr || offset + bytes > room) return r.fail(cudaErrorInvalidSymbol);
    return copy_now(to, from + offset, bytes);
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  return guarded([&](Runtime& r) {
    *a = {};
    const Allocation* found = r.machine.memory.find(reinterpret_cast<std::uintptr_t>(p), 0);
    if (found == nullptr) {
      a->type = cudaMemoryTypeUnregistered;
    } else {
      a->type =
          found->kind == Allocation::Kind::kPinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
      a->devicePointer = const_cast<void*>(p);
      a->hostPointer = found->kind == Allocation::Kind::kPinned ? const_cast<void*>(p) : nullptr;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return guarded([&](Runtime& r) {
    *total = r.settings.memory_bytes;
    *free_bytes = r.settings.memory_bytes - r.allocated_bytes;
    return cudaSuccess;
  });
}

// Managed memory is the host's.
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return cudaSuccess;
}

}  // extern "C"
