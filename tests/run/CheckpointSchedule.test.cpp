// SPDX-License-Identifier: Apache-2.0
#include "run/CheckpointSchedule.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace taper;

TEST_CASE("checkpoints are due at their distance and, where it is known, at the end") {
  const CheckpointSchedule with_end{3, 7}, without{3, 0}, only_end{0, 7}, none{0, 0};
  for (std::int64_t i = 1; i <= 12; ++i) {
    INFO(i);
    CHECK(with_end.is_due(i) == (i % 3 == 0 || i == 7));
    CHECK(without.is_due(i) == (i % 3 == 0));
    CHECK(only_end.is_due(i) == (i == 7));
    CHECK(!none.is_due(i));
  }
}

TEST_CASE("the first checkpoint is the first one that is due") {
  CHECK(CheckpointSchedule{0, 0}.first() == std::nullopt);
  for (const CheckpointSchedule schedule :
       {CheckpointSchedule{3, 7}, CheckpointSchedule{7, 3}, CheckpointSchedule{3, 3},
        CheckpointSchedule{4, 0}, CheckpointSchedule{0, 5}}) {
    INFO(schedule.every << " " << schedule.last);
    std::int64_t first = 1;
    while (!schedule.is_due(first)) ++first;
    CHECK(schedule.first() == first);
  }
}
