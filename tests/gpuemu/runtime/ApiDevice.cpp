// SPDX-License-Identifier: Apache-2.0
//
// The device itself: its properties, errors, limits; and where a program's loop begins and ends.
#include <cstring>

#include "gpuemu/runtime/Runtime.hpp"

using namespace taper::gpuemu;

extern "C" {

// A process uses one of the devices that it sees; they differ in their address alone.
cudaError_t cudaGetDeviceCount(int* n) {
  return guarded([&](Runtime& r) {
    *n = r.settings.devices;
    return *n > 0 ? cudaSuccess : r.fail(cudaErrorNoDevice);
  });
}
cudaError_t cudaSetDevice(int device) {
  return guarded([&](Runtime& r) {
    if (device < 0 || device >= r.settings.devices) return r.fail(cudaErrorInvalidDevice);
    r.device = device;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDevice(int* device) {
  return guarded([&](Runtime& r) {
    *device = r.device;
    return r.settings.devices > 0 ? cudaSuccess : r.fail(cudaErrorNoDevice);
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  return guarded([&](Runtime& r) {
    std::memset(p, 0, sizeof *p);
    std::strcpy(p->name, "PTX on the host");
    std::memcpy(p->uuid.bytes, "gpuemu", 6);
    p->totalGlobalMem = r.settings.memory_bytes;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = kMostSharedBytes;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = kLanes;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 64 << 10;
    p->major = r.settings.architecture / 10;
    p->minor = r.settings.architecture % 10;
    p->multiProcessorCount = kMultiprocessors;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    p->l2CacheSize = 50 << 20;
    p->unifiedAddressing = p->managedMemory = p->concurrentManagedAccess = p->concurrentKernels = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  const cudaError_t e = cudaGetDeviceProperties(&p, device);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(p.sharedMemPerBlock);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(kMostSharedBytes);
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = 228 << 10;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      break;
    case cudaDevAttrWarpSize:
      *value = kLanes;
      break;
    case cudaDevAttrL2CacheSize:
      *value = p.l2CacheSize;
      break;
    case cudaDevAttrComputeMode:
      *value = cudaComputeModeDefault;
      break;
    default:
      *value = 1;
  }
  return e;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int room, int device) {
  std::snprintf(text, static_cast<std::size_t>(room), "0000:%02x:00.0", device);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return guarded([&](Runtime& r) {
    const cudaError_t e = r.last_error;
    r.last_error = cudaSuccess;
    return e;
  });
}
cudaError_t cudaPeekAtLastError() {
  return guarded([&](Runtime& r) { return r.last_error; });
}

const char* cudaGetErrorName(cudaError_t e) {
  switch (e) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidSymbol:
      return "cudaErrorInvalidSymbol";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    default:
      return "another error";
  }
}
const char* cudaGetErrorString(cudaError_t e) {
  return cudaGetErrorName(e);
}

cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) {
  return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) {
  *value = 1 << 20;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// Between the two, nothing may be allocated.
cudaError_t cudaProfilerStart() {
  return guarded([&](Runtime& r) { return r.forbids_allocations = true, cudaSuccess; });
}
cudaError_t cudaProfilerStop() {
  return guarded([&](Runtime& r) { return r.forbids_allocations = false, cudaSuccess; });
}

}  // extern "C"
