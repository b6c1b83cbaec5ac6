// SPDX-License-Identifier: Apache-2.0
//
// Gradients of attention on tensor cores, in two kernels: one goes over the keys of 64 queries for
// dQ, one over the queries of 64 keys for dK and dV, so that each element is one chain of one
// thread. A warp has 16 of the 64. Sums of scores lie in its registers as the left operand of the
// next product wants them: no weight passes through shared memory.
#include "kernels/detail/tensor_attention.inl.hpp"

namespace taper::detail {
namespace {

constexpr int kTile = 64;          // queries, and keys, of a block
constexpr int kMostColumns = 128;  // elements of dK and dV whose sums registers hold

// What the kernels keep of queries beside their vectors.
struct QueryNumbers {
  int visible[kTile];
  float max[kTile], inverse_sum[kTile], dot[kTile];
};

template <int kWidth>
struct Shared {
  bf16 queries[kTile * kWidth], douts[kTile * kWidth];
  bf16 keys[kTile * kWidth], values[kTile * kWidth];
  QueryNumbers of;
};

#if defined(__CUDA_ARCH__)

// The numbers of the queries [first, first + kTile). Sixteen threads compute a dot product, each
// one of its lanes (canonical::lane_dot).
__device__ void load_numbers(QueryNumbers& of, const AttentionBackwardArgs& args,
                             const HeadQueries& queries, int first) {
  const AttentionArgs& f = args.forward;
  const int lane = static_cast<int>(threadIdx.x) % kDeviceLanes;
  for (int i = static_cast<int>(threadIdx.x) / kDeviceLanes; i < kTile;
       i += kTensorThreads / kDeviceLanes) {
    const int p = first + i;
    const std::int64_t vector = p < queries.count ? queries.vector(p) : 0;
    float dot = 0.0f;
    for (int d = lane; d < f.pages.head_dim && p < queries.count; d += kDeviceLanes)
      dot = fmaf(f.out[vector * f.head_pad + d], args.dout[vector * f.head_pad + d], dot);
    for (int other = kDeviceLanes / 2; other > 0; other /= 2)
      dot += __shfl_xor_sync(~0u, dot, other);
    if (lane > 0) continue;
    of.visible[i] = queries.visible(p);
    of.dot[i] = dot;
    of.max[i] = p < queries.count ? f.stats[vector * 2] : 0.0f;
    of.inverse_sum[i] = p < queries.count ? 1.0f / f.stats[vector * 2 + 1] : 0.0f;
  }
}

// What a query and a key give to the gradients, from their two dot products.
struct Pair {
  float weight, dscore;
};
__device__ Pair pair_of(const QueryNumbers& of, int query, bool seen, float score, float dweight,
                        float scale) {
  if (!seen) return {0.0f, 0.0f};
  const float weight = device_exp(score * scale - of.max[query]) * of.inverse_sum[query];
  return {weight, weight * (dweight - of.dot[query]) * scale};
}

// The products of 16 lines of `left` from line `row` on with 16 lines of `right` from `column` on.
template <int kWidth>
__device__ void multiply_lines(float (&sums)[2][4], bf16* left, int row, bf16* right, int column,
                               int depth) {
  for (auto& tile : sums)
    for (float& sum : tile) sum = 0.0f;
  for (int d = 0; d < depth; d += 32) {
    unsigned a[2][4];
    load_left<kWidth>(a, left, row, d);
    for (int j = 0; j < 2; ++j) {
      unsigned b[4];
      load_right<kWidth>(b, right, column + 8 * j, d);
      multiply_tiles(sums[j], a, b);
    }
  }
}

// sums (16, 8 * kTiles) += weights (16, 16) times the lines [k, k + 16) of a tile, from `column`
// on. What a thread holds of two tiles of 8 columns is what it holds of a left operand of 16 inputs
// (PTX ISA, 9.7.14.5.8).
template <int kWidth, int kTiles>
__device__ void add_lines(float (&sums)[kTiles][4], const float (&weights)[2][4], bf16* tile, int k,
                          int column) {
  unsigned a[4];
  for (int part = 0; part < 4; ++part) {
    const float* two = &weights[part / 2][part % 2 * 2];
    a[part] = packed(two[0], two[1]);
  }
#pragma unroll
  for (int t = 0; t < kTiles; t += 2) {
    unsigned b[4];
    load_wide_right_transposed<kWidth>(b, tile, column + 8 * t, k);
    multiply_tiles(sums[t], a, b[0], b[1]);
    multiply_tiles(sums[t + 1], a, b[2], b[3]);
  }
}

// Where a thread's sums of a warp's 16 lines belong: f(line, column, sum).
template <int kTiles, class F>
__device__ void for_each_sum(const float (&sums)[kTiles][4], const F& f) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
    for (int i = 0; i < 4; ++i)
      f(16 * warp + lane / 4 + i / 2 * 8, 8 * t + lane % 4 * 2 + i % 2, sums[t][i]);
}

template <int kWidth>
__device__ void compute_dq(const AttentionBackwardArgs& args, const HeadQueries& queries,
                           Shared<kWidth>& shared) {
  const AttentionArgs& f = args.forward;
  const int first = static_cast<int>(blockIdx.x) * kTile;
  if (first >= queries.count) return;
  const int lane = static_cast<int>(threadIdx.x) % 32,
            row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int end = queries.visible(min(first + kTile, queries.count) - 1);
  load_queries<kWidth>(shared.queries, kTile, f.q, f, queries, first);
  load_queries<kWidth>(shared.douts, kTile, args.dout, f, queries, first);
  load_numbers(shared.of, args, queries, first);
  float sums[kWidth / 8][4] = {};
  for (int base = 0; base < end; base += kTile) {
    __syncthreads();  // nobody reads keys and values before any more
    load_pages<kWidth, PagePart::kKeys>(shared.keys, kTile, f.pages, queries, base, end);
    load_pages<kWidth, PagePart::kValues>(shared.values, kTile, f.pages, queries, base, end);
    end_copy_group();
    await_copies<0>();
    __syncthreads();
    for (int part = 0; part < kTile; part += 16) {
      float scores[2][4], dweights[2][4];
      multiply_lines<kWidth>(scores, shared.queries, row, shared.keys, part, f.pages.head_dim);
      multiply_lines<kWidth>(dweights, shared.douts, row, shared.values, part, f.pages.head_dim);
      for (int j = 0; j < 2; ++j)
        for (int i = 0; i < 4; ++i) {
          const int query = row + lane / 4 + i / 2 * 8;
          const int key = base + part + 8 * j + lane % 4 * 2 + i % 2;
          scores[j][i] = pair_of(shared.of, query, key < shared.of.visible[query], scores[j][i],
                                 dweights[j][i], f.scale)
                             .dscore;
        }
      add_lines<kWidth>(sums, scores, shared.keys, part, 0);
    }
  }
  for_each_sum(sums, [&](int line, int d, float sum) {
    if (first + line < queries.count && d < f.head_pad)
      args.dq[queries.vector(first + line) * f.head_pad + d] = sum;
  });
}

// The block's columns of dK and dV begin at `column`.
template <int kWidth>
__device__ void compute_dkv(const AttentionBackwardArgs& args, const HeadQueries& queries,
                            Shared<kWidth>& shared) {
  constexpr int kColumns = kWidth < kMostColumns ? kWidth : kMostColumns;
  constexpr int kParts = kWidth / kColumns;
  const AttentionArgs& f = args.forward;
  const int first = static_cast<int>(blockIdx.x) / kParts * kTile;
  const int column = static_cast<int>(blockIdx.x) % kParts * kColumns;
  const int keys = queries.segment.start + queries.segment.count;
  if (first >= keys) return;
  const int lane = static_cast<int>(threadIdx.x) % 32,
            row = static_cast<int>(threadIdx.x) / 32 * 16;
  load_pages<kWidth, PagePart::kKeys>(shared.keys, kTile, f.pages, queries, first, keys);
  load_pages<kWidth, PagePart::kValues>(shared.values, kTile, f.pages, queries, first, keys);
  end_copy_group();
  float dk[kColumns / 8][4] = {}, dv[kColumns / 8][4] = {};
  // From a multiple of 64 on, so that steps begin where those of all other keys do.
  for (int p = first_query(queries.segment, first) * queries.group / kTile * kTile;
       p < queries.count; p += kTile) {
    __syncthreads();  // nobody reads the queries before any more
    load_queries<kWidth>(shared.queries, kTile, f.q, f, queries, p);
    load_queries<kWidth>(shared.douts, kTile, args.dout, f, queries, p);
    load_numbers(shared.of, args, queries, p);
    await_copies<0>();
    __syncthreads();
    for (int part = 0; part < kTile; part += 16) {
      float scores[2][4], dweights[2][4];  // (keys, queries)
      multiply_lines<kWidth>(scores, shared.keys, row, shared.queries, part, f.pages.head_dim);
      multiply_lines<kWidth>(dweights, shared.values, row, shared.douts, part, f.pages.head_dim);
      for (int j = 0; j < 2; ++j)
        for (int i = 0; i < 4; ++i) {
          const int key = first + row + lane / 4 + i / 2 * 8;
          const int query = part + 8 * j + lane % 4 * 2 + i % 2;
          const Pair pair = pair_of(shared.of, query, key < shared.of.visible[query], scores[j][i],
                                    dweights[j][i], f.scale);
          scores[j][i] = pair.weight;
          dweights[j][i] = pair.dscore;
        }
      add_lines<kWidth>(dv, scores, shared.douts, part, column);
      add_lines<kWidth>(dk, dweights, shared.queries, part, column);
    }
  }
  const auto store = [&](const auto& sums, int offset) {
    for_each_sum(sums, [&](int line, int d, float sum) {
      const std::int64_t vector =
          gradient_row(queries.segment, first + line) * f.kv_heads + queries.kv_head;
      if (first + line < keys && column + d < f.head_pad)
        args.dkv[vector * 2 * f.head_pad + offset + column + d] = sum;
    });
  };
  store(dk, 0);
  store(dv, f.head_pad);
}

#endif

enum class Gradient { kQueries, kKeysValues };

template <int kWidth, Gradient gradient>
__global__ void __launch_bounds__(kTensorThreads, 1)
    differentiate_on_tensor_cores(const AttentionBackwardArgs args, const SegmentArgs* segments) {
#if defined(__CUDA_ARCH__)
  extern __shared__ __align__(128) char memory[];
  auto& shared = *reinterpret_cast<Shared<kWidth>*>(memory);
  const HeadQueries queries(args.forward, segments[blockIdx.z], static_cast<int>(blockIdx.y));
  if constexpr (gradient == Gradient::kQueries)
    compute_dq<kWidth>(args, queries, shared);
  else
    compute_dkv<kWidth>(args, queries, shared);
#endif
}

}  // namespace

void tensor_attention_backward(const CudaExec& exec, const AttentionBackwardArgs& args,
                               const AttentionGrid& grid) {
  with_line_width(args.forward.pages.head_dim, [&](auto width) {
    const auto tiles = [](int n) { return (n + kTile - 1) / kTile; };
    const auto launch = [&](auto gradient, const char* what, int blocks) {
      launch_with_shared_memory<differentiate_on_tensor_cores<width, gradient>>(
          exec, what, dim3(blocks, args.forward.kv_heads, grid.count), kTensorThreads,
          sizeof(Shared<width>), args, grid.segments);
    };
    launch(std::integral_constant<Gradient, Gradient::kQueries>(), "attention_dq",
           tiles(grid.longest * args.forward.group));
    launch(std::integral_constant<Gradient, Gradient::kKeysValues>(), "attention_dkv",
           tiles(grid.most_keys) * (width > kMostColumns ? width / kMostColumns : 1));
  });
}

}  // namespace taper::detail
