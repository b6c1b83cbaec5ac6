// SPDX-License-Identifier: Apache-2.0
//
// Programs with one fault each, by name. The prover must find it, and must find nothing in the same
// program without it (names that begin with "clean-"; some faults share one).
#include <cuda_pipeline.h>
#include <cuda_profiler_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "kernels/detail/Warpgroup.hpp"

namespace {

using namespace taper;

void check(cudaError_t e, int line) {
  if (e == cudaSuccess) return;
  std::printf("line %d: %s\n", line, cudaGetErrorName(e));
  std::exit(3);
}
#define CHECK(call) check(call, __LINE__)

template <class T>
T* device(std::size_t n) {
  void* p = nullptr;
  CHECK(cudaMalloc(&p, n * sizeof(T)));
  return static_cast<T*>(p);
}

template <class T>
T* zeros(std::size_t n) {
  T* p = device<T>(n);
  CHECK(cudaMemset(p, 0, n * sizeof(T)));
  return p;
}

template <class T>
T* pinned(std::size_t n) {
  void* p = nullptr;
  CHECK(cudaMallocHost(&p, n * sizeof(T)));
  return static_cast<T*>(p);
}

cudaStream_t stream() {
  cudaStream_t s = nullptr;
  CHECK(cudaStreamCreate(&s));
  return s;
}

void wait() {
  CHECK(cudaDeviceSynchronize());
}

// Each thread reads what its neighbor in the block wrote.
template <bool waits>
__global__ void neighbour_of_block(int* out) {
  __shared__ int values[128];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (waits) __syncthreads();
  out[threadIdx.x] = values[(threadIdx.x + 33) % 128];
}

template <bool waits>
__global__ void neighbour_of_warp(int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (waits) __syncwarp();
  out[threadIdx.x] = values[(threadIdx.x + 1) % 32];
}

// The same through device memory.
template <bool waits>
__global__ void neighbour_in_memory(int* values, int* out) {
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (waits) __syncthreads();
  out[threadIdx.x] = values[(threadIdx.x + 33) % 128];
}

// The second write meets threads that may still read the first.
template <bool waits>
__global__ void overwrite(int* out) {
  __shared__ int value;
  if (threadIdx.x == 0) value = 1;
  __syncthreads();
  out[threadIdx.x] = value;
  if (waits) __syncthreads();
  if (threadIdx.x == 0) value = 2;
  __syncthreads();
  out[threadIdx.x] += value;
}

__global__ void store_at(int* out, int n) {
  out[n] = 1;
}

__global__ void store_shared(int* out, int n) {
  extern __shared__ int values[];
  values[n] = 1;
  out[0] = values[n];
}

__global__ void load_from(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x];
}

__global__ void load_int_at(const char* in, int at, int* out) {
  out[0] = *reinterpret_cast<const int*>(in + at);
}

template <int set>
__global__ void load_shared(int* out) {
  __shared__ int values[32];
  if (threadIdx.x < set) values[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

// A pipeline of copies into shared memory, two stages deep.
template <int left>
__global__ void staged(const float4* in, float4* out, int stages) {
  __shared__ float4 tile[2][32];
  __pipeline_memcpy_async(&tile[0][threadIdx.x], in + threadIdx.x, 16);
  __pipeline_commit();
  for (int s = 0; s < stages; ++s) {
    if (s + 1 < stages)
      __pipeline_memcpy_async(&tile[(s + 1) % 2][threadIdx.x], in + (s + 1) * 32 + threadIdx.x, 16);
    __pipeline_commit();
    __pipeline_wait_prior(left);
    __syncwarp();
    out[s * 32 + threadIdx.x] = tile[s % 2][(threadIdx.x + 1) % 32];
    __syncwarp();
  }
}

// One thread asks for a bulk copy, all wait for its mbarrier.
template <bool waits>
__global__ void bulk(const float4* in, float4* out) {
#if __CUDA_ARCH__ >= 900
  __shared__ alignas(16) float4 tile[64];
  __shared__ alignas(8) std::uint64_t barrier;
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(place) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(place), "r"(1024)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(to),
        "l"(in), "r"(1024), "r"(place)
        : "memory");
  }
  if (waits) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n@done "
        "bra over;\nbra again;\nover:\n}" ::"r"(place)
        : "memory");
  }
  out[threadIdx.x] = tile[63 - threadIdx.x];
#endif
}

// A warpgroup multiplies what its threads have written; `releases`: for products to see it, `waits`:
// before it is written again.
template <bool releases, bool waits>
__global__ void warpgroup([[maybe_unused]] float* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) bf16 tile[];  // (64, 64), both operands
  const int first = static_cast<int>(threadIdx.x) * 32;
  for (int i = 0; i < 32; ++i) tile[first + i] = to_bf16(1.0f);
  if (releases) detail::release_to_products();
  __syncthreads();
  float sums[8][4];
  const auto operand = detail::operand_of<detail::Lines::kOutputs>(tile);
  detail::begin_products();
  detail::start_product<detail::Lines::kOutputs, detail::Lines::kOutputs>(sums, operand, operand,
                                                                          false);
  detail::end_product_group();
  if (waits) {
    detail::await_products();
    __syncthreads();
  }
  for (int i = 0; i < 32; ++i) tile[first + i] = to_bf16(2.0f);
  detail::await_products();
  detail::keep_sums(sums);
  out[threadIdx.x] = sums[0][0];
#endif
}

template <bool same>
__global__ void two_barriers(int* out) {
  if (same || threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;");
  } else {
    asm volatile("bar.sync 2, 64;");
  }
  out[threadIdx.x] = 1;
}

__global__ void shuffle_from(int lane, int* out) {
  int v = static_cast<int>(threadIdx.x);
  if (threadIdx.x < 16) v = __shfl_sync(0xffffu, v, lane);
  out[threadIdx.x] = v;
}

__global__ void fill(int* out, int value) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void add_one(int* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

using Case = std::function<void()>;

// Pinned memory that is written again before `read`, queued in a stream, is over.
void reuse_pinned(bool waits,
                  const std::function<void(int* host, int* on_device, cudaStream_t s)>& read) {
  int *host = pinned<int>(64), *on_device = device<int>(64);
  const cudaStream_t s = stream();
  for (int k = 0; k < 8; ++k) {
    if (waits) CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < 32; ++i) host[i] = k;
    read(host, on_device, s);
    host[32] = k;  // which nothing reads
  }
  wait();
}

void copy_pinned(int* host, int* on_device, cudaStream_t s) {
  CHECK(cudaMemcpyAsync(on_device, host, 128, cudaMemcpyHostToDevice, s));
}

void load_pinned(int* host, int* on_device, cudaStream_t s) {
  load_from<<<1, 32, 0, s>>>(host, on_device);
}

// A kernel writes pinned memory that a copy and a kernel read after it: no fault, though the memory changes.
void copy_after_kernel() {
  int *host = pinned<int>(64), *on_device = device<int>(64);
  const cudaStream_t s = stream();
  for (int k = 0; k < 8; ++k) {
    fill<<<2, 32, 0, s>>>(host, k);
    CHECK(cudaMemcpyAsync(on_device, host, 256, cudaMemcpyDeviceToDevice, s));
    load_from<<<1, 32, 0, s>>>(host, on_device);
  }
  wait();
}

// A kernel reads pinned memory that a copy then overwrites: no fault, though the copy is queued before the kernel runs.
void copy_after_read() {
  int *host = pinned<int>(64), *on_device = zeros<int>(64);
  const cudaStream_t s = stream();
  for (int k = 0; k < 8; ++k) {
    load_from<<<1, 32, 0, s>>>(host, on_device);
    CHECK(cudaMemcpyAsync(host, on_device, 128, cudaMemcpyDeviceToHost, s));
    CHECK(cudaMemcpyAsync(on_device, host, 128, cudaMemcpyHostToDevice, s));
    CHECK(cudaMemcpyAsync(host, on_device, 128, cudaMemcpyDeviceToHost, s));
  }
  wait();
}

__global__ void store_second(int* to, int value) {
  to[1] = value;
}
__global__ void load_four(const int4* from, int* to) {
  const int4 four = *from;
  to[0] = four.x + four.y + four.z + four.w;
}

// A kernel writes one of four words that another one reads at once; the host writes another of them, if it may.
void reuse_word(bool is_hosts) {
  int *host = pinned<int>(64), *on_device = device<int>(64);
  const cudaStream_t s = stream();
  for (int k = 1; k < 9; ++k) {
    store_second<<<1, 1, 0, s>>>(host, k);
    load_four<<<1, 1, 0, s>>>(reinterpret_cast<int4*>(host), on_device);
    if (is_hosts) host[3] = k;
  }
  wait();
}

// Each block waits until all have come.
__global__ void meet(unsigned* arrived) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (*reinterpret_cast<volatile unsigned*>(arrived) < gridDim.x) __nanosleep(20);
  }
  __syncthreads();
}
void meeting(bool is_cooperative) {
  unsigned* arrived = zeros<unsigned>(1);
  void* arguments[] = {&arrived};
  const auto* kernel = reinterpret_cast<const void*>(&meet);
  CHECK(is_cooperative ? cudaLaunchCooperativeKernel(kernel, 5, 64, arguments, 0, nullptr)
                       : cudaLaunchKernel(kernel, 5, 64, arguments, 0, nullptr));
}

void two_streams(bool waits) {
  int* data = zeros<int>(64);
  wait();
  cudaStream_t a, b;
  cudaEvent_t event;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&event));
  fill<<<2, 32, 0, a>>>(data, 1);
  CHECK(cudaEventRecord(event, a));
  if (waits) CHECK(cudaStreamWaitEvent(b, event, 0));
  add_one<<<2, 32, 0, b>>>(data);
  wait();
}

// A graph of a kernel and a copy, launched thrice.
void graph(const std::string& fault) {
  int* data = zeros<int>(64);
  wait();
  cudaStream_t s, side;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamCreate(&side));
  cudaEvent_t fork, join;
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  int* other = zeros<int>(64);
  wait();
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  add_one<<<2, 32, 0, s>>>(data);
  CHECK(cudaEventRecord(fork, s));
  CHECK(cudaStreamWaitEvent(side, fork, 0));
  add_one<<<2, 32, 0, side>>>(fault == "branches" ? data : other);
  CHECK(cudaEventRecord(join, side));
  add_one<<<2, 32, 0, s>>>(data);
  if (fault == "synchronize") CHECK(cudaStreamSynchronize(s));
  void* extra = nullptr;
  if (fault == "allocate") CHECK(cudaMalloc(&extra, 64));
  if (fault == "legacy") add_one<<<2, 32>>>(data);
  if (fault != "unjoined") CHECK(cudaStreamWaitEvent(s, join, 0));
  cudaGraph_t g;
  CHECK(cudaStreamEndCapture(s, &g));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, g, 0));
  for (int k = 0; k < 3; ++k) CHECK(cudaGraphLaunch(exec, s));
  wait();
  int result[64];
  CHECK(cudaMemcpy(result, data, sizeof result, cudaMemcpyDeviceToHost));
  if (result[5] != 6) std::exit(4);
}

void watched_loop(bool allocates) {
  int* data = zeros<int>(64);
  wait();
  cudaProfilerStart();
  for (int k = 0; k < 3; ++k) {
    if (allocates && k == 2) data = device<int>(64);
    fill<<<2, 32>>>(data, k);
  }
  wait();
  cudaProfilerStop();
}

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all{
      {"clean-race-block", [] { neighbour_of_block<true><<<2, 128>>>(zeros<int>(128)); }},
      {"race-block", [] { neighbour_of_block<false><<<1, 128>>>(zeros<int>(128)); }},
      {"clean-race-warp", [] { neighbour_of_warp<true><<<1, 32>>>(zeros<int>(32)); }},
      {"race-warp", [] { neighbour_of_warp<false><<<1, 32>>>(zeros<int>(32)); }},
      {"clean-race-memory",
       [] { neighbour_in_memory<true><<<1, 128>>>(device<int>(128), device<int>(128)); }},
      {"race-memory",
       [] { neighbour_in_memory<false><<<1, 128>>>(device<int>(128), device<int>(128)); }},
      {"clean-overwrite", [] { overwrite<true><<<1, 128>>>(device<int>(128)); }},
      {"overwrite", [] { overwrite<false><<<1, 128>>>(device<int>(128)); }},
      {"clean-bounds", [] { store_at<<<1, 1>>>(device<int>(100), 99); }},
      {"bounds", [] { store_at<<<1, 1>>>(device<int>(100), 100); }},
      {"bounds-host",
       [] {
         static int host[4];
         store_at<<<1, 1>>>(host, 0);
       }},
      {"clean-bounds-shared", [] { store_shared<<<1, 1, 64>>>(device<int>(1), 15); }},
      {"bounds-shared", [] { store_shared<<<1, 1, 64>>>(device<int>(1), 16); }},
      {"clean-unwritten", [] { load_from<<<1, 32>>>(zeros<int>(32), device<int>(32)); }},
      {"unwritten", [] { load_from<<<1, 32>>>(device<int>(32), device<int>(32)); }},
      {"clean-unwritten-shared", [] { load_shared<32><<<1, 32>>>(device<int>(32)); }},
      {"unwritten-shared", [] { load_shared<16><<<1, 32>>>(device<int>(32)); }},
      {"clean-unaligned", [] { load_int_at<<<1, 1>>>(zeros<char>(8), 4, device<int>(1)); }},
      {"unaligned", [] { load_int_at<<<1, 1>>>(zeros<char>(8), 2, device<int>(1)); }},
      {"clean-not-awaited",
       [] { staged<1><<<1, 32>>>(zeros<float4>(128), device<float4>(128), 4); }},
      {"not-awaited", [] { staged<2><<<1, 32>>>(zeros<float4>(128), device<float4>(128), 4); }},
      {"clean-bulk", [] { bulk<true><<<1, 64>>>(zeros<float4>(64), device<float4>(64)); }},
      {"bulk", [] { bulk<false><<<1, 64>>>(zeros<float4>(64), device<float4>(64)); }},
      {"clean-warpgroup", [] { warpgroup<true, true><<<1, 128, 8192>>>(device<float>(128)); }},
      {"warpgroup-unreleased",
       [] { warpgroup<false, true><<<1, 128, 8192>>>(device<float>(128)); }},
      {"warpgroup-overwritten",
       [] { warpgroup<true, false><<<1, 128, 8192>>>(device<float>(128)); }},
      {"clean-deadlock", [] { two_barriers<true><<<1, 64>>>(device<int>(64)); }},
      {"deadlock", [] { two_barriers<false><<<1, 64>>>(device<int>(64)); }},
      {"clean-absent-lane", [] { shuffle_from<<<1, 32>>>(12, device<int>(32)); }},
      {"absent-lane", [] { shuffle_from<<<1, 32>>>(20, device<int>(32)); }},
      {"host-touch", [] { *static_cast<volatile int*>(zeros<int>(32)) = 1; }},
      {"clean-reuse", [] { reuse_pinned(true, copy_pinned); }},
      {"reuse", [] { reuse_pinned(false, copy_pinned); }},
      {"clean-reuse-kernel", [] { reuse_pinned(true, load_pinned); }},
      {"reuse-kernel", [] { reuse_pinned(false, load_pinned); }},
      {"clean-kernel-copy", copy_after_kernel},
      {"clean-read-copy", copy_after_read},
      {"clean-reuse-word", [] { reuse_word(false); }},
      {"reuse-word", [] { reuse_word(true); }},
      {"clean-meeting", [] { meeting(true); }},
      {"meeting", [] { meeting(false); }},
      {"clean-streams", [] { two_streams(true); }},
      {"streams", [] { two_streams(false); }},
      {"clean-graph", [] { graph(""); }},
      {"graph-branches", [] { graph("branches"); }},
      {"graph-synchronize", [] { graph("synchronize"); }},
      {"graph-allocate", [] { graph("allocate"); }},
      {"graph-unjoined", [] { graph("unjoined"); }},
      {"graph-legacy", [] { graph("legacy"); }},
      {"clean-loop", [] { watched_loop(false); }},
      {"loop", [] { watched_loop(true); }}};
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const auto found = cases().find(argc > 1 ? argv[1] : "");
  if (found == cases().end()) {
    for (const auto& [name, run] : cases()) std::printf("%s\n", name.c_str());
    return 2;
  }
  found->second();
  wait();
  std::printf("done\n");
  return 0;
}
