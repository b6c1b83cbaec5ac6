// SPDX-License-Identifier: Apache-2.0
//
// Attention on tensor cores. A block has up to 64 queries of one segment and KV head and goes over
// their keys, a chunk of 128 at a time. For scores its four warps share out the keys, for sums of
// values the elements of the vectors, so that a single query of decoding keeps all of them busy;
// between the two, weights pass through shared memory. Values of a chunk are copied while scores
// are computed, keys of the next one while values are summed.
//
// Where few queries of few sequences would keep few blocks busy, several blocks share out the
// chunks of sixteen queries. Each leaves the sums of its chunks in memory; the last one to arrive
// merges them, in the same order.
#include "kernels/detail/tensor_attention.inl.hpp"

namespace taper::detail {
namespace {

constexpr int kFewQueries = 16;  // of a KV head: one tile of rows
constexpr int kKeys = kTensorAttentionChunk;
constexpr int kWarps = kTensorThreads / 32;
constexpr int kKeyTiles = kKeys / kWarps / 8;  // of a warp, 8 keys each

// The shared memory of a block of 16 * kTiles queries.
template <int kWidth, int kTiles>
struct Shared {
  static constexpr int kQueries = 16 * kTiles;
  bf16 queries[kQueries * kWidth], keys[kKeys * kWidth], values[kKeys * kWidth];
  bf16 weights[kQueries * kKeys];
  int visible[kQueries];
  float part_max[kWarps][kQueries];  // of the chunk, by warp
  float max[kQueries], old_factor[kQueries], new_factor[kQueries], sum[kQueries];
  bool is_last;
};

// How the blocks of sixteen queries share out their chunks.
struct Sharing {
  float* sums = nullptr;  // null: one block has all
  unsigned* arrived = nullptr;
  int blocks = 1, chunks = 0, queries = 0;  // there is memory for so many chunks and queries
};

// What is kept of a chunk: maxima and sums of weights of all queries, then their vectors.
template <int kWidth>
constexpr int kept_floats(int queries) {
  return queries * (kWidth + 2);
}

#if defined(__CUDA_ARCH__)

template <int kWidth, int kTiles>
class Block {
  using S = Shared<kWidth, kTiles>;
  static constexpr int kColumns = kWidth / kWarps / 8;  // of a warp, 8 elements of the vectors each

 public:
  __device__ Block(const AttentionArgs& args, const SegmentArgs& segment, const Sharing& sharing,
                   S& shared)
      : args_(args),
        queries_(args, segment, static_cast<int>(blockIdx.y)),
        sharing_(sharing),
        first_(static_cast<int>(blockIdx.x) / sharing.blocks * S::kQueries),
        count_(min(S::kQueries, queries_.count - first_)),
        shared_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        lane_(thread_ % 32),
        warp_(thread_ / 32) {}

  __device__ void run() {
    if (count_ <= 0) return;
    const int end = queries_.visible(first_ + count_ - 1), chunks = (end + kKeys - 1) / kKeys;
    const int each = (chunks + sharing_.blocks - 1) / sharing_.blocks;  // chunks of a block
    const int sharers = (chunks + each - 1) / each;
    is_shared_ = kTiles == 1 && sharers > 1;
    const int part = static_cast<int>(blockIdx.x) % sharing_.blocks;
    if (part >= sharers) return;
    if (thread_ < S::kQueries) shared_.visible[thread_] = queries_.visible(first_ + thread_);
    load_queries<kWidth>(shared_.queries, S::kQueries, args_.q, args_, queries_, first_);
    compute(part * each * kKeys, min((part + 1) * each * kKeys, end));
    if constexpr (kTiles == 1) {
      if (is_shared_) {
        if (is_last_to_arrive(sharers)) merge(chunks);
        return;
      }
    }
    if (lane_ % 4 == 0 && warp_ < kTiles)
      for (int half = 0; half < 2; ++half) shared_.sum[query(warp_, half)] = sum_[half];
    __syncthreads();
    store();
  }

 private:
  // Of row tile t, the query whose numbers 2 * half and 2 * half + 1 this thread holds.
  __device__ int query(int t, int half) const { return 16 * t + lane_ / 4 + 8 * half; }

  // The keys [begin, end): whole chunks, but for the last one of the sequence.
  __device__ void compute(int begin, int end) {
    load_keys(begin, end);
    for (int base = begin; base < end; base += kKeys) {
      __syncthreads();  // nobody reads values and weights of the chunk before any more
      load_pages<kWidth, PagePart::kValues>(shared_.values, kKeys, args_.pages, queries_, base,
                                            end);
      end_copy_group();
      await_copies<1>();
      __syncthreads();  // keys have arrived
      compute_scores(base);
      __syncthreads();  // the maxima of all warps are there, and nobody reads keys any more
      load_keys(base + kKeys, end);
      compute_weights(base);
      await_copies<1>();
      __syncthreads();  // values have arrived, weights are there
      add_values(base, min(end - base, kKeys));
    }
  }

  __device__ void load_keys(int base, int end) {
    if (base < end)
      load_pages<kWidth, PagePart::kKeys>(shared_.keys, kKeys, args_.pages, queries_, base, end);
    end_copy_group();
  }

  // Scores of the keys of this warp, and their maxima.
  __device__ void compute_scores(int base) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      for (int j = 0; j < kKeyTiles; ++j)
        for (float& score : scores_[t][j]) score = 0.0f;
    for (int d = 0; d < args_.pages.head_dim; d += 32) {
      unsigned keys[kKeyTiles][4];
      for (int j = 0; j < kKeyTiles; ++j) load_right<kWidth>(keys[j], shared_.keys, key(j), d);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        unsigned q[2][4];
        load_left<kWidth>(q, shared_.queries, 16 * t, d);
        for (int j = 0; j < kKeyTiles; ++j) multiply_tiles(scores_[t][j], q, keys[j]);
      }
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      for (int half = 0; half < 2; ++half) {
        const int visible = shared_.visible[query(t, half)];
        float max = -INFINITY;
        for (int j = 0; j < kKeyTiles; ++j)
          for (int i = 0; i < 2; ++i) {
            float& score = scores_[t][j][2 * half + i];
            const bool seen = base + key(j) + lane_ % 4 * 2 + i < visible;
            score = seen ? score * args_.scale : -INFINITY;
            max = score > max ? score : max;
          }
        for (int other = 1; other <= 2; other *= 2) {
          const float theirs = __shfl_xor_sync(~0u, max, other);
          max = theirs > max ? theirs : max;
        }
        if (lane_ % 4 == 0) shared_.part_max[warp_][query(t, half)] = max;
      }
  }
  __device__ int key(int j) const {
    return (warp_ * kKeyTiles + j) * 8;
  }

  __device__ float chunk_max(int q) const {
    float max = shared_.part_max[0][q];
    for (int w = 1; w < kWarps; ++w)
      max = shared_.part_max[w][q] > max ? shared_.part_max[w][q] : max;
    return max;
  }

  // Exponentials of the scores, and how this chunk is merged with those before.
  __device__ void compute_weights(int base) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      for (int half = 0; half < 2; ++half) {
        const int q = query(t, half);
        const bool sees = shared_.visible[q] > base;
        const float max = chunk_max(q);
        for (int j = 0; j < kKeyTiles; ++j) {
          const float* score = &scores_[t][j][2 * half];
          *reinterpret_cast<unsigned*>(chunk_at<kKeys>(shared_.weights, q, key(j) / 8) +
                                       lane_ % 4 * 2) =
              sees ? packed(device_exp(score[0] - max), device_exp(score[1] - max)) : 0;
        }
      }
    if (!is_shared_ && thread_ < S::kQueries && shared_.visible[thread_] > base) {
      const float max = chunk_max(thread_), total = base == 0 ? max : shared_.max[thread_];
      const float top = max > total ? max : total;
      shared_.max[thread_] = top;
      shared_.old_factor[thread_] = device_exp(total - top);
      shared_.new_factor[thread_] = device_exp(max - top);
    }
  }

  // Sums of the values of a chunk of n keys, and of its weights, as the product with ones.
  __device__ void add_values(int base, int n) {
    float sums[kTiles][kColumns][4] = {}, weights_sum[4] = {};
    for (int k = 0; k < n; k += 32) {
      unsigned values[kColumns][4];
      for (int c = 0; c < kColumns; ++c)
        load_right_transposed<kWidth>(values[c], shared_.values, column(c), k);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        unsigned weights[2][4];
        load_left<kKeys>(weights, shared_.weights, 16 * t, k);
        for (int c = 0; c < kColumns; ++c) multiply_tiles(sums[t][c], weights, values[c]);
        if (t == warp_) {
          const unsigned ones[4] = {kOnes, kOnes, kOnes, kOnes};
          multiply_tiles(weights_sum, weights, ones);
        }
      }
    }
    if constexpr (kTiles == 1) {
      if (is_shared_) {
        keep_chunk(base / kKeys, sums[0], weights_sum);
        return;
      }
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      for (int half = 0; half < 2; ++half) {
        const int q = query(t, half);
        if (shared_.visible[q] <= base) continue;
        const float old_factor = shared_.old_factor[q], new_factor = shared_.new_factor[q];
        const auto merge = [&](float& total, float chunk) {
          total = base == 0 ? chunk : total * old_factor + chunk * new_factor;
        };
        for (int c = 0; c < kColumns; ++c)
          for (int i = 0; i < 2; ++i) merge(out_[t][c][2 * half + i], sums[t][c][2 * half + i]);
        if (t == warp_) merge(sum_[half], weights_sum[2 * half]);
      }
  }
  __device__ int column(int c) const {
    return (warp_ * kColumns + c) * 8;
  }

  // Where the sums of a chunk are kept.
  __device__ float* kept(int chunk) const {
    return sharing_.sums + (static_cast<std::int64_t>(tile()) * sharing_.chunks + chunk) *
                               kept_floats<kWidth>(sharing_.queries);
  }
  __device__ unsigned tile() const {
    const unsigned blocks = static_cast<unsigned>(sharing_.blocks);
    return (blockIdx.z * gridDim.y + blockIdx.y) * (gridDim.x / blocks) + blockIdx.x / blocks;
  }
  __device__ void keep_chunk(int chunk, const float (&sums)[kColumns][4],
                             const float (&weights_sum)[4]) const {
    float* const to = kept(chunk);
    for (int half = 0; half < 2; ++half) {
      const int q = query(0, half);
      if (q >= count_) continue;
      if (warp_ == 0 && lane_ % 4 == 0) {
        to[q] = chunk_max(q);
        to[sharing_.queries + q] = weights_sum[2 * half];
      }
      float* const vector = to + 2 * sharing_.queries + q * kWidth;
      for (int c = 0; c < kColumns; ++c)
        for (int i = 0; i < 2; ++i) vector[column(c) + lane_ % 4 * 2 + i] = sums[c][2 * half + i];
    }
  }
  // Whether all other blocks of these queries have left their sums.
  __device__ bool is_last_to_arrive(int sharers) {
    __threadfence();
    __syncthreads();
    if (thread_ == 0) {
      unsigned* const arrived = sharing_.arrived + tile();
      shared_.is_last = atomicAdd(arrived, 1u) + 1 == static_cast<unsigned>(sharers);
      if (shared_.is_last) *arrived = 0;
      __threadfence();
    }
    __syncthreads();
    return shared_.is_last;
  }
  // Adds the chunks in their order, as add_values() does with those of one block.
  __device__ void merge(int chunks) {
    constexpr int kAtOnce = 64;                                       // chunks
    constexpr int kElements = S::kQueries * kWidth / kTensorThreads;  // of a thread
    struct Factors {
      float old_factor[kAtOnce][S::kQueries], new_factor[kAtOnce][S::kQueries];
    };
    static_assert(sizeof(Factors) <= sizeof(shared_.keys));
    auto& factors = *reinterpret_cast<Factors*>(shared_.keys);
    float totals[kElements];
    for (int first = 0; first < chunks; first += kAtOnce) {
      const int n = min(kAtOnce, chunks - first);
      for (int i = thread_; i < n * S::kQueries; i += kTensorThreads)
        if (i % S::kQueries < count_)
          factors.new_factor[i / S::kQueries][i % S::kQueries] =
              __ldcg(kept(first + i / S::kQueries) + i % S::kQueries);
      __syncthreads();
      if (thread_ < count_) merge_maxima(factors.old_factor, factors.new_factor, first, n);
      __syncthreads();
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        const int i = e * kTensorThreads + thread_, q = i / kWidth;
        if (q >= count_) break;
        const float* const sums = kept(first) + 2 * sharing_.queries + i;
        const int stride = kept_floats<kWidth>(sharing_.queries);
        float total = totals[e];
        read_ahead(
            0, n, 1, [&](const int c) { return __ldcg(sums + c * stride); },
            [&](const int c, const float sum) {
              if ((first + c) * kKeys >= shared_.visible[q]) return;
              total = first + c == 0
                          ? sum
                          : total * factors.old_factor[c][q] + sum * factors.new_factor[c][q];
            });
        totals[e] = total;
      }
      __syncthreads();
    }
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const int i = e * kTensorThreads + thread_, q = i / kWidth, d = i % kWidth;
      if (q < count_ && d < args_.pages.head_dim)
        args_.out[queries_.vector(first_ + q) * args_.head_pad + d] = totals[e] / shared_.sum[q];
    }
    store_stats();
  }
  // Of the query of this thread: the factors of each chunk, one in place of the maximum, and sums.
  template <class Table>
  __device__ void merge_maxima(Table& old_factor, Table& new_factor, int first, int n) {
    const int q = thread_;
    for (int c = 0; c < n && (first + c) * kKeys < shared_.visible[q]; ++c) {
      const bool begins = first + c == 0;
      const float max = new_factor[c][q], total = begins ? max : shared_.max[q];
      const float top = max > total ? max : total;
      const float before = device_exp(total - top), now = device_exp(max - top);
      const float sum = __ldcg(kept(first + c) + sharing_.queries + q);
      shared_.max[q] = top;
      shared_.sum[q] = begins ? sum : shared_.sum[q] * before + sum * now;
      old_factor[c][q] = before;
      new_factor[c][q] = now;
    }
  }

  __device__ void store() const {
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
      for (int half = 0; half < 2; ++half) {
        const int q = query(t, half);
        if (q >= count_) continue;
        float* out = args_.out + queries_.vector(first_ + q) * args_.head_pad;
        for (int c = 0; c < kColumns; ++c)
          for (int i = 0; i < 2; ++i) {
            const int d = column(c) + lane_ % 4 * 2 + i;
            if (d < args_.pages.head_dim) out[d] = out_[t][c][2 * half + i] / shared_.sum[q];
          }
      }
    store_stats();
  }
  __device__ void store_stats() const {
    if (args_.stats == nullptr || thread_ >= count_) return;
    float* stats = args_.stats + queries_.vector(first_ + thread_) * 2;
    stats[0] = shared_.max[thread_];
    stats[1] = shared_.sum[thread_];
  }

  static constexpr unsigned kOnes = 0x3f803f80;  // two values of 1

  const AttentionArgs& args_;
  const HeadQueries queries_;
  const Sharing& sharing_;
  const int first_, count_;  // of the queries
  S& shared_;
  const int thread_, lane_, warp_;
  bool is_shared_ = false;
  float scores_[kTiles][kKeyTiles][4];
  float out_[kTiles][kColumns][4] = {};
  float sum_[2] = {};  // of weights, of the row tile with the number of this warp
};

#endif

template <int kWidth, int kTiles>
__global__ void __launch_bounds__(kTensorThreads, 2)
    attend_on_tensor_cores(const __grid_constant__ AttentionArgs args, const SegmentArgs* segments,
                           const __grid_constant__ Sharing sharing) {
#if defined(__CUDA_ARCH__)
  extern __shared__ __align__(128) char shared[];
  Block<kWidth, kTiles>(args, segments[blockIdx.z], sharing,
                        *reinterpret_cast<Shared<kWidth, kTiles>*>(shared))
      .run();
#endif
}

// How many blocks share out the chunks of sixteen queries: enough to keep a GPU busy, if there is
// memory for them. It does not depend on lengths, so that recorded launches stay valid while
// sequences grow.
template <int kWidth>
Sharing sharing_of(const AttentionArgs& args, const AttentionGrid& grid) {
  constexpr int kMostBlocks = 32;
  Sharing sharing;
  const int queries = grid.longest * args.group,
            tiles = grid.count * args.kv_heads * ((queries + kFewQueries - 1) / kFewQueries);
  sharing.queries = std::min(queries, kFewQueries);
  const AttentionScratch& scratch = grid.scratch;
  if (tiles == 0 || scratch.sums == nullptr || tiles > AttentionScratch::kMostShared ||
      std::int64_t{tiles} * scratch.chunks * kept_floats<kWidth>(sharing.queries) > scratch.floats)
    return sharing;
  sharing.sums = scratch.sums;
  sharing.arrived = scratch.arrived;
  sharing.blocks = std::min(kMostBlocks, AttentionScratch::kBlocks / tiles);
  sharing.chunks = scratch.chunks;
  return sharing;
}

template <int kWidth, int kTiles>
void launch(const CudaExec& exec, const AttentionArgs& args, const AttentionGrid& grid,
            const Sharing& sharing) {
  using S = Shared<kWidth, kTiles>;
  const int tiles = (grid.longest * args.group + S::kQueries - 1) / S::kQueries;
  launch_with_shared_memory<attend_on_tensor_cores<kWidth, kTiles>>(
      exec, "attention", dim3(tiles * sharing.blocks, args.kv_heads, grid.count), kTensorThreads,
      sizeof(S), args, grid.segments, sharing);
}

}  // namespace

void tensor_attention(const CudaExec& exec, const AttentionArgs& args, const AttentionGrid& grid) {
  with_line_width(args.pages.head_dim, [&](auto width) {
    constexpr int kMostTiles = width == 256 ? 2 : 4;  // what registers hold
    const Sharing sharing = sharing_of<width>(args, grid);
    if (grid.longest * args.group <= kFewQueries || sharing.sums != nullptr)
      launch<width, 1>(exec, args, grid, sharing);
    else
      launch<width, kMostTiles>(exec, args, grid, sharing);
  });
}

}  // namespace taper::detail

namespace taper {

template <>
std::int64_t attention_scratch_floats<CudaExec>(int group, int head_dim, int positions) {
  std::int64_t floats = 0;
  if (group > detail::kFewQueries) return floats;
  detail::with_line_width(head_dim, [&](auto width) {
    floats = std::int64_t{detail::AttentionScratch::kMostShared} *
             attention_scratch_chunks(positions) * detail::kept_floats<width>(group);
  });
  return floats;
}

}  // namespace taper
