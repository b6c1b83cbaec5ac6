// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/canonical/attention.hpp"
#include "kernels/ops/AttentionData.hpp"
#include "kernels/ops/Op.hpp"
#include "kernels/reference/attention.hpp"

namespace taper::test {
namespace {

// Against double, up to 600 keys.
struct Tolerance {
  double forward, backward;
};
constexpr Tolerance tolerance(KvType type) {
  return type == KvType::kBf16 ? Tolerance{1e-2, 2e-2} : Tolerance{3e-6, 2e-5};
}

// Every head layout: plain, grouped, shards that begin or end inside the group of a KV head.
const std::vector<AttentionShape>& head_layouts() {
  static const std::vector<AttentionShape> layouts = {
      {2, 2, 1, 0, 0, 0}, {4, 2, 2, 0, 0, 0}, {3, 1, 3, 0, 0, 0}, {2, 1, 3, 1, 0, 0},
      {2, 2, 3, 2, 0, 0}, {8, 1, 8, 0, 0, 0}, {5, 2, 3, 1, 0, 0}, {3, 1, 8, 4, 0, 0},
  };
  return layouts;
}

AttentionShape with_dim(AttentionShape shape, int head_dim) {
  shape.head_dim = head_dim;
  shape.head_pad = round_up(head_dim, 64);
  return shape;
}

std::string label(const AttentionShape& s, const std::vector<int>& lengths, KvType type) {
  std::string text = type == KvType::kBf16 ? "bf16 heads " : "heads ";
  text += std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " group " +
          std::to_string(s.group) + "+" + std::to_string(s.head_offset) + " dim " +
          std::to_string(s.head_dim) + " lengths";
  for (const int n : lengths) text += " " + std::to_string(n);
  return text;
}

// The whole batch in one launch against each sequence alone by the canonical loops and the
// reference.
void compare_whole(Report& report, const AttentionShape& shape, const std::vector<int>& lengths,
                   KvType type, bool with_backward) {
  AttentionBatch batch(shape, lengths, type);
  const std::string what = label(shape, lengths, type);
  batch.forward(batch.whole_segments());
  const AttentionResult wanted = canonical_forward(batch);
  report.expect_equal("attention " + what, batch.out, wanted.out);
  report.expect_equal("attention stats " + what, batch.stats, wanted.stats);
  report.expect_close("attention " + what, compact(batch.out, batch.rows(), shape.heads, shape),
                      reference_forward(batch), tolerance(type).forward);
  if (!with_backward) return;
  batch.backward();
  const AttentionResult gradients = canonical_backward(batch);
  report.expect_equal("attention dq " + what, batch.dq, gradients.dq);
  report.expect_equal("attention dkv " + what, batch.dkv, gradients.dkv);
  const ReferenceGradients right = reference_backward(batch);
  report.expect_close("attention dq " + what, compact(batch.dq, batch.rows(), shape.heads, shape),
                      right.dq, tolerance(type).backward);
  report.expect_close("attention dkv " + what,
                      compact(batch.dkv, batch.rows(), 2 * shape.kv_heads, shape), right.dkv,
                      tolerance(type).backward);
}

// A sequence in pieces, in the company of others, equals the sequence in one pass.
void compare_pieces(Report& report, const AttentionShape& shape, KvType type) {
  const std::vector<int> lengths = {300, 65, 130};
  AttentionBatch whole(shape, lengths, type);
  whole.forward(whole.whole_segments());
  for (const std::vector<int>& cuts :
       std::vector<std::vector<int>>{{1}, {63, 64, 65}, {100, 200}, {255, 256, 257}}) {
    AttentionBatch pieces(shape, lengths, type);
    int from = 0;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
      const int to = i < cuts.size() ? cuts[i] : 300;
      pieces.forward(pieces.segments_between(from, to));
      from = to;
    }
    report.expect_equal("attention in pieces " + label(shape, cuts, type), pieces.out, whole.out);
    report.expect_equal("attention stats in pieces " + label(shape, cuts, type), pieces.stats,
                        whole.stats);
  }
  AttentionBatch decode(shape, {70}, type);
  AttentionBatch prefill(shape, {70}, type);
  prefill.forward(prefill.whole_segments());
  for (int t = 0; t < 70; ++t) decode.forward(decode.segments_between(t, t + 1));
  report.expect_equal("attention token by token " + label(shape, {70}, type), decode.out,
                      prefill.out);
}

// The backward pass of tokens behind a prefix that other sequences have too.
void compare_behind_prefix(Report& report, const AttentionShape& shape, int prefix,
                           const std::vector<int>& lengths, KvType type) {
  AttentionBatch batch(shape, lengths, type);
  batch.forward(batch.whole_segments());
  batch.backward(batch.segments_between(prefix, 1 << 30));
  Exec().fence();
  const AttentionResult wanted = canonical_backward(batch, prefix);
  const std::string what = label(shape, lengths, type) + " from " + std::to_string(prefix);
  report.expect_equal("attention dkv " + what, batch.dkv, wanted.dkv);
  const std::size_t width = static_cast<std::size_t>(shape.heads) * shape.head_pad;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const std::size_t begin = (batch.first_row(static_cast<int>(s)) + prefix) * width,
                      end = batch.first_row(static_cast<int>(s) + 1) * width;
    report.expect_equal("attention dq " + what,
                        Floats(batch.dq.begin() + begin, batch.dq.begin() + end),
                        Floats(wanted.dq.begin() + begin, wanted.dq.begin() + end));
  }
}

// The last tokens of sequences, whose chunks several threads or blocks share out: some of them
// cross into another chunk.
void compare_last(Report& report, const AttentionShape& shape, const std::vector<int>& lengths,
                  KvType type) {
  AttentionBatch whole(shape, lengths, type);
  whole.forward(whole.whole_segments());
  Exec().fence();
  for (const int tokens : {1, 3, 9, 21}) {
    AttentionBatch last(shape, lengths, type);
    last.forward(last.whole_segments());
    Exec().fence();
    last.out.assign(last.out.size(), 0.0f);
    last.stats.assign(last.stats.size(), 0.0f);
    Staged<AttentionSegment> segments = last.whole_segments();
    for (AttentionSegment& segment : segments) {
      segment.row += segment.count - tokens;
      segment.start += segment.count - tokens;
      segment.count = tokens;
    }
    last.forward(segments);
    Exec().fence();
    const auto rows = [&](const AttentionBatch& batch, const Floats& values) {
      const std::size_t width = values.size() / batch.rows();
      Floats found;
      for (std::size_t s = 0; s < lengths.size(); ++s) {
        const std::size_t end = batch.first_row(static_cast<int>(s)) + lengths[s];
        found.insert(found.end(), &values[(end - tokens) * width], &values[end * width - 1] + 1);
      }
      return found;
    };
    const std::string what = "last " + std::to_string(tokens) + " tokens, shared out";
    report.expect_equal(what, rows(last, last.out), rows(whole, whole.out));
    report.expect_equal("stats, " + what, rows(last, last.stats), rows(whole, whole.stats));
  }
}

void compare(Report& report, KvType type) {
  const std::vector<int> dims = {16, 24, 64, 80, 128};
  for (std::size_t l = 0; l < head_layouts().size(); ++l)
    for (std::size_t d = 0; d < dims.size(); ++d)
      // An emulated GPU takes minutes over all pairs: there each layout meets one dimension.
      if (kOnHost || d == l % dims.size())
        compare_whole(report, with_dim(head_layouts()[l], dims[d]), {1, 63, 64, 65}, type, true);
  for (const int head_dim : {16, 80}) {
    compare_whole(report, with_dim(head_layouts()[1], head_dim), {255, 256, 257, 300}, type, true);
    compare_whole(report, with_dim(head_layouts()[4], head_dim), {600}, type, false);
  }
  for (const int prefix : {1, 63, 64, 100})
    compare_behind_prefix(report, with_dim(head_layouts()[prefix % 2 == 0 ? 1 : 6], 24), prefix,
                          {101, 130, 200}, type);
  for (const std::size_t layout : {0, 2, 4, 6})
    compare_pieces(report, with_dim(head_layouts()[layout], 24), type);
  if (kOnHost || type == KvType::kBf16)
    compare_last(report, with_dim({6, 2, 3, 0, 0, 0}, 24), {700, 129, 128, 260}, type);
  if (kOnHost)  // tasks of several chunks
    compare_last(report, with_dim({5, 2, 3, 1, 0, 0}, 16), {4200, 70, 1025, 257}, type);
}

void gradient(Report& report) {
  const reference::AttentionHeads heads{3, 2, 2, 1, 4};
  const int tokens = 5, width = heads.heads * heads.head_dim,
            kv_width = heads.kv_heads * heads.head_dim;
  const auto make = [&](int columns, int seed) {
    return to_matrix(random_floats(tokens * columns, seed), tokens, columns);
  };
  const reference::Matrix q = make(width, 1), k = make(kv_width, 2), v = make(kv_width, 3),
                          dout = make(width, 4);
  const auto loss = [&](const reference::Vector& at_q, const reference::Vector& at_k,
                        const reference::Vector& at_v) {
    return dot(dout.data, reference::attention(heads, {tokens, width, at_q},
                                               {tokens, kv_width, at_k}, {tokens, kv_width, at_v})
                              .data);
  };
  const reference::AttentionGradient g = reference::attention_backward(heads, dout, q, k, v);
  report.expect_close(
      "reference dq", g.dq.data,
      finite_differences(q.data, [&](const auto& at) { return loss(at, k.data, v.data); }), 1e-8);
  report.expect_close(
      "reference dk", g.dk.data,
      finite_differences(k.data, [&](const auto& at) { return loss(q.data, at, v.data); }), 1e-8);
  report.expect_close(
      "reference dv", g.dv.data,
      finite_differences(v.data, [&](const auto& at) { return loss(q.data, k.data, at); }), 1e-8);
}

void time(const Stopwatch& watch, KvType type) {
  const AttentionShape shape = with_dim({9, 3, 3, 0, 0, 0}, 64);
  for (const int length : {100, 1000, 8000}) {
    AttentionBatch batch(shape, {length}, type);
    const double pairs = 0.5 * length * (length + 1) * shape.heads;
    const std::string name = std::string(type == KvType::kBf16 ? " over bf16" : "") +
                             " 9/3 heads of 64, length " + std::to_string(length);
    if (length < 8000) {
      const auto segments = batch.whole_segments();
      watch.measure(
          "attention" + name, [&] { batch.forward(segments); }, 0, 4.0 * pairs * shape.head_dim);
      watch.measure(
          "attention_backward" + name, [&] { batch.backward(); }, 0, 10.0 * pairs * shape.head_dim);
    }
    for (const int tokens : {1, 4, 8}) {
      const auto last = batch.segments_between(length - tokens, length);
      watch.measure(
          "attention, last " + std::to_string(tokens) + name, [&] { batch.forward(last); },
          (type == KvType::kBf16 ? 4.0 : 8.0) * length * shape.kv_heads * 64, 0);
    }
  }
}

}  // namespace

Op attention_op() {
  const auto compare_f32 = [](Report& report) {
    compare(report, KvType::kF32);
    if constexpr (kOnHost)
      compare_whole(report, with_dim({4, 2, 2, 0, 0, 0}, 256), {1, 70, 140}, KvType::kF32, true);
  };
  return {"attention", compare_f32, gradient,
          [](const Stopwatch& watch) { time(watch, KvType::kF32); }};
}

Op bf16_attention_op() {
  const auto compare_bf16 = [](Report& report) {
    compare(report, KvType::kBf16);
    compare_whole(report, with_dim({4, 2, 2, 0, 0, 0}, 256), {1, 70, 140}, KvType::kBf16, true);
  };
  const auto time_bf16 = [](const Stopwatch& watch) { time(watch, KvType::kBf16); };
  return {"bf16 attention", compare_bf16, {}, time_bf16};
}

}  // namespace taper::test
