// SPDX-License-Identifier: Apache-2.0
#include "engine/Penalty.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "device/Runtime.hpp"
#include "engine/SmallConfig.hpp"
#include "engine/Truncation.hpp"
#include "kernels/logits.hpp"

using namespace taper;
using taper::test::config_of;

namespace {

constexpr double kRarest = -25.0;  // log-prob; integer masses end at 2^-40

// Logits of one row on one rank.
struct Row {
  explicit Row(const std::vector<float>& values)
      : table(config_of(static_cast<int>(values.size()))),
        parallel(table, self, Arithmetic::kF32),
        memory(static_cast<std::size_t>(parallel.shard().vocab().size()) * kVocabBlock, 0.0f),
        logits(make_matrix(memory.data(), 1, static_cast<int>(memory.size()))) {
    std::copy(values.begin(), values.end(), memory.begin());
  }
  void penalize(RepetitionPenalty& marks, const std::vector<std::int32_t>& tokens, float penalty) {
    const std::vector<std::span<const std::int32_t>> rows{tokens};
    marks.apply(HostExec(), parallel, logits, rows, penalty);
  }

  Group self = Group::self();
  ParamTable table;
  ModelParallel parallel;
  std::vector<float> memory;
  FloatMatrix logits;
};

}  // namespace

TEST_CASE("each id that is there is penalized once, away from being drawn") {
  Row row({2.0f, -2.0f, 0.0f, 5.0f});
  RepetitionPenalty marks;
  row.penalize(marks, {0, 1, 0, 0, 2}, 2.0f);
  CHECK(row.memory[0] == 1.0f);
  CHECK(row.memory[1] == -4.0f);
  CHECK(row.memory[2] == 0.0f);
  CHECK(row.memory[3] == 5.0f);
  row.penalize(marks, {3}, 2.0f);  // another sequence: nothing is remembered
  CHECK(row.memory[0] == 1.0f);
  CHECK(row.memory[3] == 2.5f);
  row.penalize(marks, {0, 3}, 4.0f);  // nor of the same ids
  CHECK(row.memory[0] == 0.25f);
  CHECK(row.memory[3] == 0.625f);
}

TEST_CASE("the marks serve steps in layouts with more and with fewer local ids") {
  const int ids = 3 * kVocabBlock, last = ids - 1;
  Row small({8.0f, 8.0f}), large(std::vector<float>(ids, 8.0f));
  RepetitionPenalty marks;
  for (const float left : {4.0f, 2.0f, 1.0f}) {
    small.penalize(marks, {1}, 2.0f);
    large.penalize(marks, {1, last, 1}, 2.0f);
    CHECK(small.memory[0] == 8.0f);
    CHECK(small.memory[1] == left);
    CHECK(large.memory[1] == left);
    CHECK(large.memory[static_cast<std::size_t>(last)] == left);
  }
}

TEST_CASE("penalty, temperature and truncations make what transformers' processors make") {
  set_float_mode();
  const HostExec exec;
  std::ifstream file(TAPER_GOLDEN_DIR "/sampling.json");
  const auto golden = nlohmann::json::parse(file);
  REQUIRE(golden["cases"].size() > 30);
  RepetitionPenalty marks;
  for (const auto& c : golden["cases"]) {
    SamplingOptions o;
    o.temperature = c["temperature"];
    o.top_k = c["top_k"];
    o.top_p = c["top_p"];
    o.min_p = c["min_p"];
    INFO("penalty " << c["penalty"] << ", temperature " << o.temperature << ", top-k " << o.top_k
                    << ", top-p " << o.top_p << ", min-p " << o.min_p);
    const auto values = c["logits"].get<std::vector<float>>();
    const int ids = static_cast<int>(values.size());
    Row row(values);
    row.penalize(marks, c["tokens"].get<std::vector<std::int32_t>>(), c["penalty"].get<float>());
    float max = 0;
    scale_logits(exec, row.logits, FloatVector(&max, 1), ids, o.temperature);
    const ConstFloatMatrix logits(row.memory.data(), 1, row.memory.size());
    std::array<MassLevel, kMassLevels> levels;
    count_mass_levels(exec, MatrixView<MassLevel, HostExec>(levels.data(), 1, kMassLevels), logits,
                      ConstFloatVector(&max, 1), ids);
    MassLevel all;
    for (const MassLevel& level : levels) all += level;
    const std::int64_t total = all.mass, begin = 0, least = 1;
    std::vector<WeightedLogit> listed(static_cast<std::size_t>(all.ids));
    list_weighted_logits(exec, VectorView<WeightedLogit, HostExec>(listed.data(), listed.size()),
                         VectorView<const std::int64_t, HostExec>(&begin, 1),
                         VectorView<const std::int64_t, HostExec>(&least, 1), logits,
                         ConstFloatVector(&max, 1), ids);
    std::vector<WeightedId> weighted;
    for (const WeightedLogit& l : listed) weighted.push_back({l.column, l.logit, l.mass});
    const KeptIds kept = truncate(weighted, total, o);
    const double kept_log = std::log(static_cast<double>(kept.mass) / static_cast<double>(total));
    std::vector<double> expected(values.size(), -INFINITY);
    for (std::size_t i = 0; i < c["kept"].size(); ++i)
      expected[c["kept"][i].get<std::size_t>()] = c["log_probs"][i];
    for (int id = 0; id < ids; ++id) {
      INFO("id " << id);
      if (std::isfinite(expected[id]) && expected[id] < kRarest) continue;
      const bool keeps = std::any_of(kept.ids.begin(), kept.ids.end(),
                                     [&](const WeightedId& k) { return k.id == id; });
      REQUIRE(keeps == std::isfinite(expected[id]));
      if (std::isfinite(expected[id]))  // the rounding of numbers around 20 in float
        CHECK(std::abs(log_prob(row.memory[id], max, total) - kept_log - expected[id]) < 4e-6);
    }
  }
}
