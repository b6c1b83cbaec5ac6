// SPDX-License-Identifier: Apache-2.0
//
// Where kernels run. Modules above the kernels hand an Exec from call to call and know no more of
// it: what it is made of (Kokkos, and CUDA with it) is seen only by the kernels themselves.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/detail/Attention.hpp"

#if defined(TAPER_CUDA)
struct CUstream_st;
#endif

namespace taper {

// How products of activations and weights are computed. kF32: chains of fused multiply-adds in f32,
// with the same bits on all machines. kBf16: both operands are rounded to bf16 and summed as the
// matrix units of the machine do it: on the host those of x86 (canonical/pair_chain.hpp), with the
// same bits where there are none; on GPUs those of their architecture (canonical/tensor_core.hpp).
// kBf16Dot, on the host alone: both are rounded and summed as vector units of x86 do it
// (canonical/dot_chain.hpp), with the same bits where these have no instruction for it.
enum class Arithmetic { kF32, kBf16, kBf16Dot };
constexpr bool rounds_operands(Arithmetic arithmetic) {
  return arithmetic != Arithmetic::kF32;
}

// The arithmetic of runs and commands that name none.
#if defined(TAPER_CUDA)
inline constexpr Arithmetic kDefaultArithmetic = Arithmetic::kBf16;
#else
inline constexpr Arithmetic kDefaultArithmetic = Arithmetic::kF32;
#endif

// The threads of this process. Kokkos must run when one is used.
class HostExec {
 public:
  int concurrency() const;  // threads
  // Waits for all kernels that were launched on it.
  void fence() const;

  Arithmetic arithmetic = Arithmetic::kF32;
  KvType kv_type = KvType::kF32;  // of cached keys and values
};

#if defined(TAPER_CUDA)
// The GPU of this process, one stream of it: kernels run in the order of their launches, and
// launches return at once.
class CudaExec {
 public:
  void fence() const;
  CUstream_st* stream() const;
  // The compute capability, such as 90 for 9.0.
  int architecture() const;

  Arithmetic arithmetic = Arithmetic::kF32;

  // Memory of the device in which products of many rows keep their activations, and gradients of
  // weights both operands, rounded to bf16, on Hopper. Elsewhere, and where it is too small for
  // them, they are rounded each time that they are read.
  struct Rounding {
    void* memory = nullptr;
    std::int64_t bytes = 0;
  };
  Rounding rounding;
};
#endif

// Sets how products are computed and what cached keys and values are; on a GPU the second follows
// from the first.
inline void set_numbers(HostExec& exec, Arithmetic arithmetic, KvType kv_type) {
  exec.arithmetic = arithmetic;
  exec.kv_type = kv_type;
}
#if defined(TAPER_CUDA)
inline void set_numbers(CudaExec& exec, Arithmetic arithmetic, KvType /*kv_type*/) {
  exec.arithmetic = arithmetic;
}
#endif

// `exec` with memory of so many floats for the operands of products that are rounded before
// (CudaExec::Rounding).
inline HostExec with_rounding(const HostExec& exec, float* /*memory*/, std::int64_t /*floats*/) {
  return exec;
}
#if defined(TAPER_CUDA)
inline CudaExec with_rounding(const CudaExec& exec, float* memory, std::int64_t floats) {
  CudaExec result = exec;
  result.rounding = {memory, floats * std::int64_t{sizeof(float)}};
  return result;
}
#endif

// Where models live and compute. All modules above the kernels name this one, so that a build for a
// device changes it here alone.
#if defined(TAPER_CUDA)
using Exec = CudaExec;
#else
using Exec = HostExec;
#endif
inline constexpr bool kOnHost = std::is_same_v<Exec, HostExec>;

}  // namespace taper
