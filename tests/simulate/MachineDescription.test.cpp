// SPDX-License-Identifier: Apache-2.0
#include "simulate/MachineDescription.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a described model has the parameters of its model card") {
  const ModelDescription llama;
  CHECK(std::abs(llama.parameters() / 8.03e9 - 1) < 0.001);
  CHECK(llama.kv_bytes_per_position() == 131072);
  ModelDescription tied = llama;
  tied.tied = true;
  CHECK(llama.parameters() - tied.parameters() == 128256.0 * 4096);
}

TEST_CASE("descriptions that are impossible are named by their keys") {
  MachineDescription machine;
  CHECK(machine.problems().empty());
  CHECK(machine.nodes() == 1);
  machine.ranks = 12;
  REQUIRE(machine.problems().size() == 1);
  CHECK_THAT(machine.problems()[0], ContainsSubstring("Machine/Ranks is 12"));
  machine.ranks = 16;
  CHECK(machine.problems().empty());
  CHECK(machine.nodes() == 2);
  ModelDescription model;
  CHECK(model.problems().empty());
  model.kv_heads = 5;
  REQUIRE(model.problems().size() == 1);
  CHECK_THAT(model.problems()[0], ContainsSubstring("Model/KV Heads"));
}

TEST_CASE("numbers that nothing can be divided by are named, not divided by") {
  MachineDescription machine;
  machine.ranks_per_node = 0;
  CHECK(machine.problems() ==
        std::vector<std::string>{"Machine/Ranks Per Node is 0 (must be positive)"});
  machine.ranks = -1;
  CHECK(machine.problems().size() == 2);
  ModelDescription model;
  model.kv_heads = 0;
  CHECK(model.problems() == std::vector<std::string>{"Model/KV Heads is 0 (must be positive)"});
  model.weight_bytes = 0;
  CHECK(model.problems().size() == 2);
}
