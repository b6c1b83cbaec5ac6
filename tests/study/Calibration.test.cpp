// SPDX-License-Identifier: Apache-2.0
#include "study/Calibration.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "simulate/Roofline.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

LatencyProfile measured(const MachineDescription& machine, const ModelDescription& model) {
  LatencyProfile p = describe_profile(machine, model, {}, {1, 2, 4, 8}, {64, 4096});
  p.identity.model = {{"layers", "32"},   {"hidden", "4096"},  {"heads", "32"},
                      {"kv_heads", "8"},  {"head_dim", "128"}, {"intermediate", "14336"},
                      {"vocab", "128256"}};
  return p;
}

}  // namespace

TEST_CASE("a description foretells its own profile, and another machine's by the ratio") {
  const MachineDescription machine;
  const ModelDescription model;
  const LatencyProfile p = measured(machine, model);
  const auto same = calibrate(machine, model, p);
  REQUIRE(same.size() == 8);  // four degrees, decode steps and prompts
  for (const StepErrors& e : same) {
    CHECK(e.errors.size() > 8);
    CHECK(e.absolute_quantile(1) < 1e-5);
  }
  MachineDescription slow = machine;
  slow.device.tflops /= 2;
  slow.device.memory_gb_s /= 2;
  slow.device.step_us *= 2;
  slow.device.layer_us *= 2;
  const auto twice = calibrate(slow, model, p);
  CHECK(twice.front().tp == 1);
  CHECK(std::abs(twice.front().quantile(0.5) - 1) < 1e-5);
  CHECK(twice.back().quantile(0.5) < 1);  // its exchanges are as fast as they were
  CHECK_THAT(to_table(twice), ContainsSubstring("+100.0%"));
}

TEST_CASE("a profile of another model or machine is refused") {
  const MachineDescription machine;
  ModelDescription model;
  const LatencyProfile p = measured(machine, model);
  model.hidden = 2048;
  CHECK_THROWS_WITH(calibrate(machine, model, p),
                    ContainsSubstring("hidden 4096") && ContainsSubstring("2048"));
  MachineDescription other = machine;
  other.ranks = 4;
  CHECK_THROWS_WITH(calibrate(other, ModelDescription{}, p),
                    ContainsSubstring("Machine/Ranks is 4"));
}
