// SPDX-License-Identifier: Apache-2.0
#include "results/MetricTable.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <set>

using namespace taper;

namespace {

std::string schema_text() {
  std::ifstream in(TAPER_DATA_DIR "/../doc/results-schema.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

// "a/{mean,max,min}" for "a/max".
std::string family(const std::string& name) {
  return name.substr(0, name.rfind('/')) + "/{mean,max,min}";
}

}  // namespace

TEST_CASE("every metric has a name of its own, a unit and a description") {
  std::set<std::string> names;
  for (const MetricMeaning& m : metric_table()) {
    INFO(m.name);
    CHECK(names.insert(m.name).second);
    CHECK(!m.units.empty());
    CHECK(!m.description.empty());
  }
  REQUIRE(meaning_of("/metrics/perf/throughput") != nullptr);
  CHECK(meaning_of("/metrics/perf/throughput")->units == "token/s");
  REQUIRE(meaning_of("/timing/gen") != nullptr);
  CHECK(meaning_of("/timing/gen")->units == "s");
  CHECK(meaning_of("/metrics/timing_s/gen") != nullptr);
  CHECK(meaning_of("/metrics/gen") == nullptr);
  REQUIRE(meaning_of("/metrics/reward/judge/latency_s/mean") != nullptr);
  CHECK(meaning_of("/metrics/reward/judge/latency_s/mean")->units == "s");
  CHECK(meaning_of("/metrics/val/reward/judge/style/mean")->units == "1");
  REQUIRE(meaning_of("/metrics/val/final/reward/judge/latency_s/max") != nullptr);
  CHECK(meaning_of("/metrics/val/final/reward/judge/latency_s/max")->units == "s");
  CHECK(meaning_of("/metrics/reward/judge/cut_short") != nullptr);
  CHECK(meaning_of("/metrics/reward/judge/unheard") == nullptr);
}

TEST_CASE("the documented schema lists every metric and phase") {
  const std::string text = schema_text();
  REQUIRE(!text.empty());
  const auto has = [&](const std::string& name) {
    return text.find("`" + name + "`") != std::string::npos;
  };
  for (const MetricMeaning& phase : phase_table()) {
    INFO(phase.name);
    CHECK(has(phase.name));
  }
  for (const MetricMeaning& m : metric_table()) {
    INFO(m.name);
    const bool is_phase = m.name.starts_with("timing_s/") && has("timing_s/<phase>");
    CHECK((has(m.name) || has(family(m.name)) || is_phase));
  }
}
