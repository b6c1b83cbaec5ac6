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
// matrix units of the machine do it: on the host those of x86 (canonical/tile_chain.hpp), with the
// same bits where there are none; on GPUs those of their architecture (canonical/tensor_core.hpp).
// kBf16Dot, on the host alone: both are rounded and summed as vector units of x86 do it
// (canonical/dot_chain.hpp), with the same bits where these have no instruction for it.
enum class Arithmetic { kF32, kBf16, kBf16Dot };
constexpr bool rounds_operands(Arithmetic arithmetic) {
  return arithmetic != Arithmetic::kF32;
}

// What products are computed in and keys and values are cached as.
struct Precision {
  Arithmetic arithmetic = Arithmetic::kF32;
  KvType kv_type = KvType::kF32;
};

// Memory of the execution space in which products keep operands rounded to bf16, so that they are
// not rounded each time that they are read: on the host and on Hopper, activations of many rows and
// both operands of gradients of weights. Where it is too small for them, they are rounded as they
// are read.
struct Rounding {
  void* memory = nullptr;
  std::int64_t bytes = 0;
};

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
  Rounding rounding;
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
  Rounding rounding;
};
#endif

// On a GPU the type of cached keys and values follows from the arithmetic.
inline void set_precision(HostExec& exec, const Precision& precision) {
  exec.arithmetic = precision.arithmetic;
  exec.kv_type = precision.kv_type;
}
#if defined(TAPER_CUDA)
inline void set_precision(CudaExec& exec, const Precision& precision) {
  exec.arithmetic = precision.arithmetic;
}
#endif

// `exec` with memory of so many floats for Rounding.
template <class E>
E with_rounding(const E& exec, float* memory, std::int64_t floats) {
  E result = exec;
  result.rounding = {memory, floats * std::int64_t{sizeof(float)}};
  return result;
}

// Where models live and compute. All modules above the kernels name this one, so that a build for a
// device changes it here alone.
#if defined(TAPER_CUDA)
using Exec = CudaExec;
#else
using Exec = HostExec;
#endif
inline constexpr bool kOnHost = std::is_same_v<Exec, HostExec>;

}  // namespace taper
