// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.hpp"

#include <cmath>

#include "kernels/CheckOp.hpp"
#include "kernels/canonical/attention.hpp"
#include "kernels/reference/attention.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("attention equals the canonical chunks, whole, in pieces and in company", "[attention]") {
  check_compare(attention_op());
}

TEST_CASE("attention over pages of bf16 equals the canonical chunks", "[attention][bf16]") {
  check_compare(bf16_attention_op());
}

#if defined(TAPER_CUDA)
TEST_CASE("a copied batch has the tokens, and segments that refer to the copied blocks") {
  const Staged<std::int32_t> ids{7, 8, 9, 0}, positions{64, 65, 3, 0}, first{5, 2}, second{1};
  const Staged<AttentionSegment> segments{
      {first.data(), 64, 2, 0}, {second.data(), 3, 1, 2}, {nullptr, 0, 0, 3}};
  Staged<std::int32_t> ids_to(4, -1), positions_to(4, -1), blocks(6, -1);
  Staged<AttentionSegment> segments_to(3);
  Staged<unsigned> arrived(detail::AttentionScratch::kMostShared, 9u);
  copy_batch(
      Exec(),
      {ids_to.data(), positions_to.data(), segments_to.data(), blocks.data(), 2, arrived.data()},
      staging_view(ids), staging_view(positions), staging_view(segments));
  Exec().fence();
  CHECK(ids_to == ids);
  CHECK(positions_to == positions);
  CHECK(blocks == Staged<std::int32_t>{5, 2, 1, -1, -1, -1});
  for (std::size_t s = 0; s < segments.size(); ++s) {
    CHECK(segments_to[s].blocks == blocks.data() + 2 * s);
    CHECK(segments_to[s].start == segments[s].start);
    CHECK(segments_to[s].count == segments[s].count);
    CHECK(segments_to[s].row == segments[s].row);
  }
  CHECK(arrived == Staged<unsigned>(detail::AttentionScratch::kMostShared, 0u));
}
#endif

TEST_CASE("gradients of attention", "[attention]") {
  check_gradient(attention_op());
}

TEST_CASE("reference attention by hand", "[attention][reference]") {
  // One head of one dimension. The first query sees its own value; the second weighs two keys 1
  // : 3.
  const reference::AttentionHeads heads{1, 1, 1, 0, 1};
  const double root = std::log(3.0);
  const reference::Matrix q(2, 1, {5.0, 1.0}), k(2, 1, {0.0, root}), v(2, 1, {8.0, 4.0});
  const reference::Matrix out = reference::attention(heads, q, k, v);
  CHECK(out(0, 0) == 8.0);
  CHECK(std::abs(out(1, 0) - 5.0) < 1e-12);
  const reference::AttentionGradient g =
      reference::attention_backward(heads, {2, 1, {1.0, 1.0}}, q, k, v);
  CHECK(std::abs(g.dv(0, 0) - 1.25) < 1e-12);
  CHECK(std::abs(g.dv(1, 0) - 0.75) < 1e-12);
  CHECK(g.dq(0, 0) == 0.0);
  CHECK(std::abs(g.dq(1, 0) - 0.75 * (4.0 - 5.0) * root) < 1e-12);
  CHECK(std::abs(g.dk(0, 0) - 0.25 * (8.0 - 5.0)) < 1e-12);
}

TEST_CASE("query heads find their KV head across a shard boundary", "[attention][reference]") {
  const reference::AttentionHeads heads{3, 2, 3, 1, 8};
  CHECK(heads.kv_head(0) == 0);
  CHECK(heads.kv_head(1) == 0);
  CHECK(heads.kv_head(2) == 1);
  detail::AttentionArgs args;
  args.heads = 3;
  args.group = 3;
  args.head_offset = 1;
  CHECK(detail::query_heads(args, 0).begin == 0);
  CHECK(detail::query_heads(args, 0).end == 2);
  CHECK(detail::query_heads(args, 1).begin == 2);
  CHECK(detail::query_heads(args, 1).end == 3);
}

TEST_CASE("chunks are merged, not run through", "[attention][canonical]") {
  // 257 equal keys: the second chunk has one key and a weight of its own; the mean of the values is
  // theirs.
  flush_denormals();
  const Floats k(257, 0.5f), v(257, 3.0f), q = {1.0f};
  Floats out(1);
  const canonical::Softmax s =
      canonical::attend(out.data(), q.data(), {k.data(), 1}, {v.data(), 1}, 257, 1);
  CHECK(out[0] == 3.0f);
  CHECK(s.max == 0.5f);
  CHECK(s.sum == 257.0f);
}

#ifdef TAPER_ASSERTIONS
TEST_CASE("gradients of keys that have no rows are refused before the launch", "[attention]") {
  AttentionShape shape;
  shape.heads = shape.kv_heads = 1;
  shape.head_dim = 16;
  shape.head_pad = 64;
  Floats x(128), stats(4), dkv(256);
  const std::vector<AttentionSegment> segments = {{nullptr, 1, 2, 0}};
  CHECK_THROWS(attention_backward(Exec(), view(x, 2, 64), view(dkv, 2, 128), const_view(x, 2, 64),
                                  const_view(x, 2, 64), const_view(stats, 2, 2),
                                  const_view(x, 2, 64), LayerPages(), const_view(segments), shape));
}
#endif
