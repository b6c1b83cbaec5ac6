// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/AttentionData.hpp"

#include <algorithm>

#include "kernels/canonical/attention.hpp"
#include "kernels/reference/attention.hpp"

namespace taper::test {

AttentionBatch::AttentionBatch(const AttentionShape& shape, const std::vector<int>& lengths,
                               KvType type)
    : shape_(shape), lengths_(lengths), first_row_{0} {
  for (const int length : lengths) first_row_.push_back(first_row_.back() + length);
  const std::int64_t width = std::int64_t{rows()} * shape.heads * shape.head_pad;
  const std::int64_t kv_width = std::int64_t{rows()} * shape.kv_heads * 2 * shape.head_pad;
  // Seeds by row and not by batch: a sequence has the same data in any company of the same length
  // before it.
  q = random_floats(width, 11, -2, 2);
  kv = random_floats(kv_width, 12, -2, 2);
  // Chains of tensor cores round for themselves.
  seen = kOnHost && type == KvType::kBf16 ? rounded(kv, WeightType::kBf16) : kv;
  dout = random_floats(width, 13);
  out.assign(q.size(), 0.0f);
  dq.assign(q.size(), NAN);
  dkv.assign(kv.size(), NAN);
  stats.assign(static_cast<std::size_t>(rows()) * shape.heads * 2, NAN);

  int count = 0;
  for (const int length : lengths) count += (length + kPage - 1) / kPage;
  const int total = count + 3;
  const int places = total % 7 == 0 ? total + 1 : total;  // prime to 7: block i lies at place 7 i
  int next = 0;
  for (const int length : lengths) {
    blocks_.emplace_back();
    for (int b = 0; b < (length + kPage - 1) / kPage; ++b)
      blocks_.back().push_back(next++ * 7 % places);
  }
  const int longest = *std::max_element(lengths.begin(), lengths.end());
#if defined(TAPER_CUDA)
  scratch_chunks_ = attention_scratch_chunks(longest);
#endif
  // Enough for several tokens of each sequence.
  scratch_.assign(static_cast<std::size_t>(
                      4 * attention_scratch_floats<Exec>(shape.group, shape.head_dim, longest)),
                  NAN);
  const std::int64_t page = page_floats(shape.head_dim, type);
  pool_.assign(static_cast<std::size_t>(places) * shape.kv_heads * page, NAN);
  pages_ = make_pages(pool_.data(), shape.kv_heads, shape.head_dim, type);
}

Staged<AttentionSegment> AttentionBatch::segments_between(int from, int to) const {
  Staged<AttentionSegment> segments;
  for (int s = static_cast<int>(lengths_.size()) - 1; s >= 0; --s) {
    const int end = std::min(to, lengths_[s]);
    if (from < end) segments.push_back({blocks_[s].data(), from, end - from, first_row_[s] + from});
  }
  return segments;
}

void AttentionBatch::forward(const Staged<AttentionSegment>& segments) {
  const int width = shape_.heads * shape_.head_pad,
            kv_width = shape_.kv_heads * 2 * shape_.head_pad;
  write_pages(Exec(), pages_, const_view(kv, rows(), kv_width), const_view(segments), shape_);
  AttentionSegments<Exec> shared = const_view(segments);
  if (kOnHost || type() == KvType::kBf16)
    shared.scratch = {scratch_.data(), std::ssize(scratch_), scratch_chunks_, arrived_.data()};
  attention(Exec(), view(out, rows(), width), view(stats, rows(), shape_.heads * 2),
            const_view(q, rows(), width), pages_, shared, shape_);
}

void AttentionBatch::backward(Staged<AttentionSegment> segments) {
  for (AttentionSegment& segment : segments) segment.gradient_shift = -segment.start;
  const int width = shape_.heads * shape_.head_pad,
            kv_width = shape_.kv_heads * 2 * shape_.head_pad;
  attention_backward(Exec(), view(dq, rows(), width), view(dkv, rows(), kv_width),
                     const_view(dout, rows(), width), const_view(out, rows(), width),
                     const_view(stats, rows(), shape_.heads * 2), const_view(q, rows(), width),
                     pages_, const_view(segments), shape_);
}

namespace {

// Calls f(sequence, token, head, position of the query's vector in q, KV head) in ascending order.
template <class F>
void for_queries(const AttentionBatch& batch, const F& f) {
  const AttentionShape& s = batch.shape();
  for (int sequence = 0; sequence < static_cast<int>(batch.lengths().size()); ++sequence)
    for (int t = 0; t < batch.lengths()[sequence]; ++t)
      for (int h = 0; h < s.heads; ++h)
        f(sequence, t, h, (static_cast<std::size_t>(batch.first_row(sequence) + t) * s.heads + h),
          (h + s.head_offset) / s.group);
}

struct KeysValues {
  canonical::HeadRows k, v;
};

KeysValues keys_values(const AttentionBatch& batch, int sequence, int kv_head) {
  const AttentionShape& s = batch.shape();
  const std::int64_t stride = s.kv_heads * 2 * s.head_pad;
  const float* k =
      batch.seen.data() + batch.first_row(sequence) * stride + kv_head * 2 * s.head_pad;
  return {{k, stride}, {k + s.head_pad, stride}};
}

// f(chain) with the chains of the batch.
template <class F>
AttentionResult with_chain([[maybe_unused]] const AttentionBatch& batch, const F& f) {
#if defined(TAPER_CUDA)
  if (batch.type() == KvType::kBf16)
    return f(canonical::TensorChain{canonical::tensor_core(Exec().architecture())});
#endif
  return f(canonical::FmaChain());
}

}  // namespace

AttentionResult canonical_forward(const AttentionBatch& batch) {
  return with_chain(batch, [&](const auto& chain) {
    const AttentionShape& s = batch.shape();
    AttentionResult result;
    result.out.assign(batch.q.size(), 0.0f);
    result.stats.assign(batch.stats.size(), NAN);
    for_queries(batch, [&](int sequence, int t, int, std::size_t slot, int kv_head) {
      const KeysValues kv = keys_values(batch, sequence, kv_head);
      const canonical::Softmax softmax =
          canonical::attend(&result.out[slot * s.head_pad], &batch.q[slot * s.head_pad], kv.k, kv.v,
                            t + 1, s.head_dim, chain);
      result.stats[2 * slot] = softmax.max;
      result.stats[2 * slot + 1] = softmax.sum;
    });
    return result;
  });
}

AttentionResult canonical_backward(const AttentionBatch& batch, int first) {
  return with_chain(batch, [&](const auto& chain) {
    const AttentionShape& s = batch.shape();
    AttentionResult result;
    result.dq.assign(batch.q.size(), 0.0f);
    result.dkv.assign(batch.kv.size(), 0.0f);
    for (int sequence = 0; sequence < static_cast<int>(batch.lengths().size()); ++sequence)
      for (int kv_head = 0; kv_head < s.kv_heads; ++kv_head) {
        std::vector<canonical::SeenQuery> queries;
        std::vector<std::size_t> places;
        for_queries(batch, [&](int of, int t, int, std::size_t slot, int of_head) {
          if (of != sequence || of_head != kv_head || t < first) return;
          const std::size_t at = slot * s.head_pad;
          places.push_back(at);
          queries.push_back({&batch.q[at],
                             &batch.out[at],
                             &batch.dout[at],
                             {batch.stats[2 * slot], batch.stats[2 * slot + 1]},
                             t + 1});
        });
        const KeysValues kv = keys_values(batch, sequence, kv_head);
        const int keys = batch.lengths()[sequence];
        const canonical::HeadGradients g =
            canonical::attend_backward(queries, kv.k, kv.v, keys, s.head_dim, chain);
        for (std::size_t p = 0; p < places.size(); ++p)
          std::copy_n(&g.dq[p * s.head_dim], s.head_dim, &result.dq[places[p]]);
        for (int j = 0; j < keys; ++j) {
          float* to =
              &result.dkv[(static_cast<std::size_t>(batch.first_row(sequence) + j) * s.kv_heads +
                           kv_head) *
                          2 * s.head_pad];
          std::copy_n(&g.dk[std::size_t(j) * s.head_dim], s.head_dim, to);
          std::copy_n(&g.dv[std::size_t(j) * s.head_dim], s.head_dim, to + s.head_pad);
        }
      }
    return result;
  });
}

Floats compact(const Floats& values, int rows, int vectors, const AttentionShape& shape) {
  Floats result;
  for (int i = 0; i < rows * vectors; ++i)
    result.insert(result.end(), values.begin() + i * shape.head_pad,
                  values.begin() + i * shape.head_pad + shape.head_dim);
  return result;
}

namespace {

struct SequenceMatrices {
  reference::Matrix q, dout, k, v;
};

SequenceMatrices sequence_matrices(const AttentionBatch& batch, int sequence) {
  const AttentionShape& s = batch.shape();
  const int n = batch.lengths()[sequence], row = batch.first_row(sequence);
  SequenceMatrices m{{n, s.heads * s.head_dim},
                     {n, s.heads * s.head_dim},
                     {n, s.kv_heads * s.head_dim},
                     {n, s.kv_heads * s.head_dim}};
  for (int t = 0; t < n; ++t)
    for (int d = 0; d < s.head_dim; ++d) {
      for (int h = 0; h < s.heads; ++h) {
        const std::size_t at = (static_cast<std::size_t>(row + t) * s.heads + h) * s.head_pad + d;
        m.q(t, h * s.head_dim + d) = batch.q[at];
        m.dout(t, h * s.head_dim + d) = batch.dout[at];
      }
      for (int h = 0; h < s.kv_heads; ++h) {
        const std::size_t at =
            (static_cast<std::size_t>(row + t) * s.kv_heads + h) * 2 * s.head_pad + d;
        m.k(t, h * s.head_dim + d) = batch.kv[at];
        m.v(t, h * s.head_dim + d) = batch.kv[at + s.head_pad];
      }
    }
  return m;
}

reference::AttentionHeads reference_heads(const AttentionShape& s) {
  return {s.heads, s.kv_heads, s.group, s.head_offset, s.head_dim};
}

void append(reference::Vector& all, const reference::Vector& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

reference::Vector reference_forward(const AttentionBatch& batch) {
  reference::Vector out;
  for (int i = 0; i < static_cast<int>(batch.lengths().size()); ++i) {
    const SequenceMatrices m = sequence_matrices(batch, i);
    append(out, reference::attention(reference_heads(batch.shape()), m.q, m.k, m.v).data);
  }
  return out;
}

ReferenceGradients reference_backward(const AttentionBatch& batch) {
  const AttentionShape& s = batch.shape();
  ReferenceGradients all;
  for (int i = 0; i < static_cast<int>(batch.lengths().size()); ++i) {
    const SequenceMatrices m = sequence_matrices(batch, i);
    const reference::AttentionGradient g =
        reference::attention_backward(reference_heads(s), m.dout, m.q, m.k, m.v);
    append(all.dq, g.dq.data);
    for (int t = 0; t < batch.lengths()[i]; ++t)
      for (int h = 0; h < s.kv_heads; ++h)
        for (const reference::Matrix* part : {&g.dk, &g.dv})
          for (int d = 0; d < s.head_dim; ++d) all.dkv.push_back((*part)(t, h * s.head_dim + d));
  }
  return all;
}

}  // namespace taper::test
