// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "engine/EarlyExits.hpp"
#include "engine/EngineRun.hpp"
#include "model/HeadModel.hpp"

namespace taper::test {

// Exits behind these layers, whose heads know every third id.
struct TestExits {
  static constexpr int kVocab = 90;  // of the exits: the last block of 64 is not full

  TestExits(const GoldenModel& m, const std::vector<int>& layers) {
    for (int i = 0; i < kVocab; ++i) ids.push_back(2 + 3 * i);
    for (const int l : layers) {
      models.emplace_back(m.config, kVocab, 100 + static_cast<std::uint64_t>(l), self);
      heads.push_back({l, &models.back().view, &models.back().parallel, ids});
    }
  }
  GuessModel& set(Engine& engine, const EngineOptions& o) {
    const std::int64_t floats = EarlyExits::floats(models.front().table, models.front().parallel,
                                                   o.scheduler.max_step_rows, o.logit_rows);
    MemoryPlan plan;
    plan.add("exits", MemoryPhase::kAlways, floats * std::int64_t{sizeof(float)});
    arena = std::make_unique<Arena>(plan);
    return engine.set_exits(heads, arena->take<float>("exits", MemoryPhase::kAlways, floats));
  }

  Group self = Group::self();
  std::vector<std::int32_t> ids;
  std::list<HeadModel> models;
  std::vector<ExitHead> heads;
  std::unique_ptr<Arena> arena;
};

}  // namespace taper::test
