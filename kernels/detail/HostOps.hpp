// SPDX-License-Identifier: Apache-2.0
//
// The vectorized host operations of one instruction set, as a table of plain functions on one
// thread's task. The launchers in kernels/*.cpp split the work; all sets give the same bits.
#pragma once

#include <cstdint>

#include "kernels/Instructions.hpp"
#include "kernels/detail/Attention.hpp"
#include "kernels/detail/Product.hpp"
#include "kernels/detail/Rows.hpp"

namespace taper::detail {

using ProductTask = void(const ProductArgs&, int row_begin, int row_end, int panel);

// What units for pairs of bf16 values do.
struct PairOps {
  ProductTask* dot_product;  // in Arithmetic::kBf16Dot
  // Operands of Arithmetic::kBf16 and kBf16Dot, rounded as to_operand() does it: n values, and a
  // zero if that makes whole pairs.
  void (*round)(bf16* to, const float* from, std::int64_t n);
  // The same of n rows of a plain matrix, `step` apart, as pairs of rows (n / 2 up, width), with
  // zeros beyond the first `columns` columns and the last row; width is a multiple of 16.
  void (*round_pairs)(Bf16Pair* to, std::int64_t width, const float* from, std::int64_t step, int n,
                      int columns);
};

struct HostOps {
  InstructionSet set;
  ProductTask* product;
  ProductTask* tile_product;  // in Arithmetic::kBf16
  PairOps pairs;
  void (*attention)(const AttentionArgs&, const SegmentArgs&, int kv_head, int token_begin,
                    int token_end);
  void (*attention_chunks)(const AttentionArgs&, const SegmentArgs&, int kv_head, int chunk_begin,
                           int chunk_end, float* sums);
  void (*merge_chunks)(const AttentionArgs&, const SegmentArgs&, int kv_head, const float* sums);
  void (*attention_backward)(const AttentionBackwardArgs&, const SegmentArgs&, int kv_head);
  float (*rmsnorm)(float* y, const float* x, const float* gain, int n, float eps);
  void (*rmsnorm_backward)(float* dx, const float* dy, const float* x, const float* gain, int n,
                           float inv, bool accumulate);
  void (*column_sums)(float* sum, const ColumnArgs& args, int columns);
  void (*rope)(float* y, const float* x, const float* cosine, const float* sine, int head_dim,
               float direction);
  void (*swiglu)(float* y, const float* gate, const float* up, int n);
  void (*swiglu_backward)(float* dgate, float* dup, const float* dy, const float* gate,
                          const float* up, int n);
  void (*add)(float* y, const float* a, const float* b, std::int64_t n);
  float (*scale_and_max)(float* x, int n, float divisor);
  std::int64_t (*mass)(const float* logits, int n, float max);
  void (*masses)(std::int64_t* out, const float* logits, int n, float max);
  int (*find_mass)(const float* logits, int n, float max, std::int64_t target);
  std::int64_t (*weighted_logit)(const float* logits, int n, float max);
  void (*logit_gradient)(float* logits, int n, float lse, float entropy, float c_logp,
                         float c_entropy, float inverse_temperature);
  void (*adamw)(float* p, float* m, float* v, const float* g, std::int64_t n,
                const AdamWStep& step);
  double (*sum_squares)(const float* x, std::int64_t n);
};

extern const HostOps kScalarOps;
extern const HostOps kAvx2Ops;
extern const HostOps kAvx512Ops;
extern const PairOps kAvx512Bf16PairOps;
ProductTask amx_product;  // in Arithmetic::kBf16
// Asks the system for the registers of tiles, without which these must not be used.
bool ask_for_tiles();

// Those that this process uses (kernels/Instructions.hpp), chosen when they are first asked for.
// Throws Error as host_instructions() does.
const HostOps& host_ops();

}  // namespace taper::detail
