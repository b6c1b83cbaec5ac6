// SPDX-License-Identifier: Apache-2.0
#include "train/PlacementFile.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/Error.hpp"
#include "support/Scratch.hpp"
#include "train/RunOptions_params.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

PlacementFile sample() {
  PlacementFile plan;
  plan.ranks = 4;
  plan.models = {"policy", "reference"};
  plan.identity.model = {{"layers", "30"}};
  plan.identity.transport = {
      {"library", "MPICH 4.0.2"}, {"UCX_NET", "a=b/c"}, {"UCX_TLS", "tcp,self"}};
  plan.seconds = 1.5;
  plan.flat_seconds = 2.25;
  plan.settings = {{"Placement/Policy", "0-1:1x2"}, {"Placement/Reference", "2-3:2x1"}};
  return plan;
}

RunOptions read(const std::string& text, const std::vector<std::string>& assignments = {}) {
  auto file = param::ParamFile::parse(text, "run.yaml");
  for (const auto& assignment : assignments) file.set(assignment);
  RunOptions options;
  param::Schema schema;
  describe(schema, options);
  read_run(schema, std::move(file));
  return options;
}

}  // namespace

TEST_CASE("a plan survives its file") {
  const Scratch scratch;
  const auto path = scratch.path() / "plan.yaml";
  write_placement_file(path, sample());
  const PlacementFile plan = read_placement_file(path);
  CHECK(plan.ranks == 4);
  CHECK(plan.models == sample().models);
  CHECK(plan.settings == sample().settings);
  CHECK(plan.seconds == 1.5);
  CHECK(plan.flat_seconds == 2.25);
  CHECK(plan.identity.model == sample().identity.model);
  CHECK(plan.identity.transport == sample().identity.transport);
}

TEST_CASE("a run takes the settings of its plan, but keeps its own") {
  const Scratch scratch;
  const auto path = scratch.path() / "plan.yaml";
  write_placement_file(path, sample());
  const std::string run =
      "Model: {Directory: m}\nAlgorithm: {KL Coefficient: 0.01}\n"
      "Placement: {Strategy: plan, File: " +
      path.string() + "}\n";
  const RunOptions options = read(run);
  CHECK(options.placement.policy == "0-1:1x2");
  CHECK(options.placement.reference == "2-3:2x1");
  CHECK(options.placement.generation.empty());
  CHECK(read(run, {"Placement/Policy=2-3"}).placement.policy == "2-3");
}

TEST_CASE("a plan that cannot be read is an error that names it") {
  const Scratch scratch;
  const auto path = scratch.path() / "plan.yaml";
  const std::string run =
      "Model: {Directory: m}\nPlacement: {Strategy: plan, File: " + path.string() + "}\n";
  CHECK_THROWS_MATCHES(read(run), Error,
                       MessageMatches(ContainsSubstring("there is no such file")));
  spill(path, "Plan: {Ranks: 2, Settings: [nonsense]}\n");
  CHECK_THROWS_MATCHES(read(run), Error, MessageMatches(ContainsSubstring("is no plan")));
  spill(path, "Plan: {Ranks: 2, Settings: [Training/Iterations=1]}\n");
  CHECK_THROWS_MATCHES(read(run), Error,
                       MessageMatches(ContainsSubstring("Training/Iterations places no model")));
  spill(path, "Plan: {Ranks: 2, Settings: [Placement/Policy=0], Identity: [soul/weight=21]}\n");
  CHECK_THROWS_MATCHES(read_placement_file(path), Error,
                       MessageMatches(ContainsSubstring("is no plan")));
  spill(path, "Plan: {Ranks: 2}\n");
  CHECK_THROWS_AS(read_placement_file(path), Error);
  CHECK_THROWS_MATCHES(read("Model: {Directory: m}\nPlacement: {Strategy: plan}\n"), Error,
                       MessageMatches(ContainsSubstring("Placement/File names none")));
  CHECK_THROWS_MATCHES(read("Model: {Directory: m}\nPlacement: {File: plan.yaml}\n"), Error,
                       MessageMatches(ContainsSubstring("Placement/Strategy is not plan")));
}

TEST_CASE("a plan for other ranks, models, networks is refused with what differs") {
  const PlacementFile plan = sample();
  CHECK_NOTHROW(require_fitting_placement("p.yaml", plan, 4, plan.models, plan.identity));
  CHECK_THROWS_MATCHES(require_fitting_placement("p.yaml", plan, 8, plan.models, plan.identity),
                       Error, MessageMatches(ContainsSubstring("for 4 ranks (there are 8)")));
  CHECK_THROWS_MATCHES(
      require_fitting_placement("p.yaml", plan, 4, {"policy"}, plan.identity), Error,
      MessageMatches(ContainsSubstring("policy, reference (this run has policy)")));
  ProfileIdentity other = plan.identity;
  other.transport["UCX_TLS"] = "shm";
  CHECK_THROWS_MATCHES(require_fitting_placement("p.yaml", plan, 4, plan.models, other), Error,
                       MessageMatches(ContainsSubstring("UCX_TLS 'tcp,self' (here it is 'shm')")));
}
