// SPDX-License-Identifier: Apache-2.0
//
// What a thread's floating-point instructions make of denormals. Bits depend on it, so all threads
// that compute flush them (doc/numerics.md).
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#error "How are denormals flushed on this processor? Results depend on it (doc/numerics.md)."
#endif

namespace taper {

// The control register of a thread.
struct FloatMode {
  std::uint64_t bits = 0;
};

inline FloatMode read_float_mode() {
  FloatMode mode;
#if defined(__x86_64__)
  mode.bits = _mm_getcsr();
#else
  asm volatile("mrs %0, fpcr" : "=r"(mode.bits));
#endif
  return mode;
}

inline void write_float_mode(FloatMode mode) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<unsigned>(mode.bits));
#else
  asm volatile("msr fpcr, %0" ::"r"(mode.bits));
#endif
}

// On this thread denormal operands count as zero, and results that would be denormal become zero.
// Returns the mode of before.
inline FloatMode flush_on_this_thread() {
#if defined(__x86_64__)
  constexpr std::uint64_t kFlush = 0x8000 | 0x0040;  // FTZ and DAZ of MXCSR
#else
  constexpr std::uint64_t kFlush = 1 << 24;  // FZ of FPCR covers both
#endif
  const FloatMode before = read_float_mode();
  write_float_mode({before.bits | kFlush});
  return before;
}

}  // namespace taper
