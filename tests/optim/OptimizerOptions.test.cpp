// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "optim/OptimizerOptions_params.hpp"
#include "support/Problems.hpp"

using namespace taper;
using taper::test::check_problem;

namespace {

struct Fixture {
  explicit Fixture(ScheduleEnd end = ScheduleEnd::kGiven) {
    describe_optimizer(schema, adamw, lr, end);
  }
  // Of a file with these lines in its section.
  std::vector<std::string> problems(const std::vector<std::string>& lines) {
    std::string text = "Optimizer:\n";
    for (const auto& line : lines) text += "  " + line + "\n";
    return schema.read_and_list_problems(param::ParamFile::parse(text, "run.yaml"));
  }

  AdamWOptions adamw;
  ScheduleOptions lr;
  param::Schema schema;
};

}  // namespace

TEST_CASE("the section Optimizer sets AdamW and its learning rate") {
  Fixture f;
  CHECK(f.problems({"Learning Rate: 2e-5", "Schedule: wsd", "Warmup Steps: 3", "Total Steps: 50",
                    "Final Share: 0.25", "Stable Share: 0.5", "Beta1: 0.8", "Beta2: 0.95",
                    "Epsilon: 1e-6", "Weight Decay: 0", "Clip Norm: 0", "On Non Finite: skip"})
            .empty());
  CHECK(f.lr.peak == 2e-5);
  CHECK(f.lr.kind == ScheduleOptions::Kind::kWsd);
  CHECK(f.lr.warmup_steps == 3);
  CHECK(f.lr.total_steps == 50);
  CHECK(f.lr.final_share == 0.25);
  CHECK(f.lr.stable_share == 0.5);
  CHECK(f.adamw.beta1 == 0.8);
  CHECK(f.adamw.beta2 == 0.95);
  CHECK(f.adamw.eps == 1e-6);
  CHECK(f.adamw.weight_decay == 0.0);
  CHECK(f.adamw.clip_norm == 0.0);
  CHECK(f.adamw.on_non_finite == AdamWOptions::OnNonFinite::kSkip);
}

TEST_CASE("a value beyond its limits is refused by its name") {
  for (const std::string line :
       {"Learning Rate: -1e-5", "Schedule: linear", "Warmup Steps: -1", "Total Steps: -1",
        "Final Share: 1.5", "Stable Share: -0.1", "Beta1: 1", "Beta2: -0.1", "Epsilon: 0",
        "Weight Decay: -1", "Clip Norm: -1", "On Non Finite: ignore"}) {
    INFO(line);
    const std::string name = "Optimizer/" + line.substr(0, line.find(':'));
    check_problem(Fixture().problems({line}), {name.c_str()});
  }
}

TEST_CASE("a cosine ends at a step that is given, or at the end of the run where that is meant") {
  const std::vector<std::string> open{"Schedule: cosine", "Warmup Steps: 5"};
  check_problem(Fixture(ScheduleEnd::kGiven).problems(open), {"Optimizer/Total Steps is 0"});
  CHECK(Fixture(ScheduleEnd::kOfRun).problems(open).empty());
  for (const ScheduleEnd end : {ScheduleEnd::kGiven, ScheduleEnd::kOfRun})
    check_problem(Fixture(end).problems({"Schedule: cosine", "Warmup Steps: 5", "Total Steps: 4"}),
                  {"Optimizer/Total Steps is 4", "Optimizer/Warmup Steps 5"});
}

TEST_CASE("a section may have a learning rate besides other settings") {
  ScheduleOptions lr;
  int epochs = 1;
  param::Schema schema;
  auto critic = schema.section("Critic", "");
  critic.integer("Epochs", epochs, "");
  describe_schedule(critic, lr, ScheduleEnd::kGiven, "Critic");
  const auto problems = [&](const std::string& text) {
    return schema.read_and_list_problems(param::ParamFile::parse(text, "run.yaml"));
  };
  CHECK(problems("Critic:\n  Epochs: 2\n  Learning Rate: 0.5\n").empty());
  CHECK(epochs == 2);
  CHECK(lr.peak == 0.5);
  check_problem(problems("Critic:\n  Schedule: cosine\n"), {"Critic/Total Steps is 0"});
}
