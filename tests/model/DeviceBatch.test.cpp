// SPDX-License-Identifier: Apache-2.0
#include "model/DeviceBatch.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("on the host a batch is read where it is") {
  const Staged<std::int32_t> ids{5, 6, 7}, positions{0, 1, 2}, blocks{4};
  const Staged<AttentionSegment> segments{{blocks.data(), 0, 3, 0}};
  const TokenBatch staged{staging_view(ids), staging_view(positions), staging_view(segments)};
  CHECK(DeviceBatch::floats({3, 1, 1, 2, 64}) == 0);
  const TokenBatch batch = DeviceBatch(nullptr, {3, 1, 1, 2, 64}).bring(Exec(), staged);
  CHECK(batch.rows() == 3);
  CHECK(batch.ids.data() == ids.data());
  CHECK(batch.host_ids.data() == ids.data());
  CHECK(batch.positions.data() == positions.data());
  CHECK(batch.segments.data() == segments.data());
  // One chunk of keys is not shared out.
  CHECK(batch.segments.scratch.floats == 0);
}

TEST_CASE("attention over several chunks of keys has memory for what threads leave") {
  const DeviceBatch::Shape shape{3, 1, 8, 2, 64};
  const std::int64_t floats = DeviceBatch::floats(shape);
  CHECK(floats > 0);
  Staged<float> memory(static_cast<std::size_t>(floats));
  const TokenBatch batch = DeviceBatch(memory.data(), shape).bring(Exec(), {});
  CHECK(batch.segments.scratch.sums == memory.data());
  CHECK(batch.segments.scratch.floats == floats);
}
