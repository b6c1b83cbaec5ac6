// SPDX-License-Identifier: Apache-2.0
#include "study/SimulateJob.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>

#include "base/Error.hpp"
#include "io/Json.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

SimulateOptions small_case() {
  SimulateOptions o;
  o.machine.device.tflops = 149.7;
  o.machine.device.memory_gb_s = 696;
  o.machine.inside.gb_s = 10;
  o.generation.prompts_per_rank = 4;
  o.play.seeds = o.play.iterations = o.play.warm_up = 1;
  o.play.oracle_grid = 6;
  return o;
}

}  // namespace

TEST_CASE("a described case is played and tabulated") {
  SimulateOptions o = small_case();
  o.published.speed_up = 1.2;
  o.generation.share = 0.74;
  const SimulatedCase c = simulate(o, "small");
  CHECK(c.generations == 1);
  CHECK(c.degrees == std::vector<int>{1, 2, 4, 8});
  CHECK(c.saved(c.best_ns()) == 0);
  CHECK(c.oracle_ns <= c.best_ns());
  CHECK(c.saved(c.adaptive_ns) > -0.02);
  CHECK(c.speed_up(c.best_ns() / 2) == 1 / (1 - 0.74 * c.saved(c.best_ns() / 2)));
  const std::string table = to_table({c});
  std::istringstream head(table.substr(0, table.find('\n')));
  for (std::string column; head >> column;)
    if (column != "it." && column != "one")
      CHECK_THAT(table, ContainsSubstring("\n" + column + " "));
  const Json line = parse_json(to_json_lines({c}), "case");
  CHECK(line["adaptive_ns"] == c.adaptive_ns);
  CHECK(line["static_ns"].size() == 4);
}

TEST_CASE("without an oracle its column is empty") {
  SimulateOptions o = small_case();
  o.play.oracle_grid = 0;
  const SimulatedCase c = simulate(o, "small");
  CHECK(c.oracle_ns == 0);
  CHECK_THAT(to_table({c}), ContainsSubstring("  - "));
}

TEST_CASE("drafts make every layout faster, and the planner prices them") {
  const SimulatedCase plain = simulate(small_case(), "plain");
  SimulateOptions o = small_case();
  o.generation.drafts.coverage = 0.7;
  SimulatedCase before = plain;
  for (const double acceptance : {0.5, 0.7, 0.9}) {
    o.generation.drafts.acceptance = acceptance;
    const SimulatedCase c = simulate(o, "drafts");
    for (std::size_t i = 0; i < c.static_ns.size(); ++i)
      CHECK(c.static_ns[i] < before.static_ns[i]);
    CHECK(c.oracle_ns < before.oracle_ns);
    // Never much worse than the better of drafts alone and layouts alone.
    CHECK(c.adaptive_ns < std::min(c.best_ns(), plain.adaptive_ns) * 102 / 100);
    before = c;
  }
  o.generation.drafts.acceptance = 0;
  CHECK(simulate(o, "wrong").static_ns == plain.static_ns);
}

TEST_CASE("memory decides degrees and sequences in flight") {
  SimulateOptions o = small_case();
  const SimulatedSetting all = setting_of(o);
  CHECK(all.degrees == std::vector<int>{1, 2, 4, 8});
  CHECK(all.kv_bytes_per_position == 131072);
  CHECK(all.peak_positions > 1000);
  CHECK(all.peak_positions < 3000);
  o.machine.device.memory_gb = 22;  // 1.5 GB beside the weights
  const SimulatedSetting tight = setting_of(o);
  CHECK(tight.degrees == std::vector<int>{2, 4, 8});
  CHECK(tight.slots_per_rank >= 32);
  o.play.degrees = {1};
  CHECK(setting_of(o).slots_per_rank < 32);
  o.play.degrees = {3};
  CHECK_THROWS_WITH(setting_of(o), ContainsSubstring("Play/Degrees has 3"));
  o.machine.device.memory_gb = 2;
  CHECK_THROWS_WITH(setting_of(o), ContainsSubstring("Machine/Device/Memory GB is 2"));
}

TEST_CASE("rounds of tail batching on a described machine") {
  SimulateOptions o = small_case();
  o.generation.prompts_per_rank = 1;
  const std::string rows = simulate_rounds(o, "small");
  for (const char* name : {"plain", "1.25, samples 1.25", "by price", "published"})
    CHECK_THAT(rows, ContainsSubstring(name));
  CHECK(simulate_rounds(o, "small") == rows);
}
