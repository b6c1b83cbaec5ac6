// SPDX-License-Identifier: Apache-2.0
#include "instance/ModelOptions.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/Problems.hpp"

using namespace taper;
using taper::test::check_problem;

TEST_CASE("passes run as the options say") {
  CHECK(PassOptions().train_pass({}).checkpointing == Checkpointing::kNo);
  const TrainPassOptions pass =
      PassOptions{2, 77, true}.train_pass({Arithmetic::kF32, KvType::kBf16});
  CHECK(pass.precision.kv_type == KvType::kBf16);
  CHECK(pass.max_rows == 77);
  CHECK(pass.checkpointing == Checkpointing::kYes);
}

TEST_CASE("bf16 arithmetic needs bf16 weights") {
  Numbers numbers;
  CHECK(numbers.problems("--arithmetic", "--cache-type").empty());
  numbers.arithmetic = Arithmetic::kBf16;
  CHECK(numbers.problems("--arithmetic", "--cache-type").empty());
  numbers.type = WeightType::kF32;
  check_problem(numbers.problems("--arithmetic", "--cache-type"),
                {"--arithmetic is bf16", "the forward weights are f32"});
  ModelOptions options;
  options.directory = "model";
  options.arithmetic = Arithmetic::kBf16;
  options.type = WeightType::kF32;
  check_problem(options.problems(), {"Model/Arithmetic is bf16"});
}

TEST_CASE("each arithmetic has a name") {
  for (const auto& [name, arithmetic] : named_arithmetics()) CHECK(to_string(arithmetic) == name);
}

TEST_CASE("dot products of bf16 are an arithmetic of CPUs") {
  Numbers numbers;
  numbers.arithmetic = Arithmetic::kBf16Dot;
#if defined(TAPER_CUDA)
  check_problem(numbers.problems("--arithmetic", "--cache-type"), {"an arithmetic of CPUs"});
#else
  CHECK(numbers.problems("--arithmetic", "--cache-type").empty());
  CHECK(numbers.kv_type() == KvType::kF32);
#endif
  numbers.type = WeightType::kF32;
  check_problem(numbers.problems("--arithmetic", "--cache-type"),
                {"--arithmetic is bf16-dot", "the forward weights are f32"});
}

TEST_CASE("the type of the cache is chosen on CPUs, and follows from the arithmetic on GPUs") {
  Numbers numbers;
  numbers.arithmetic = Arithmetic::kF32;
  CHECK(numbers.kv_type() == KvType::kF32);
  numbers.cache = CacheType::kBf16;
#if defined(TAPER_CUDA)
  check_problem(numbers.problems("--arithmetic", "--cache-type"), {"--cache-type is not that"});
#else
  CHECK(numbers.kv_type() == KvType::kBf16);
  CHECK(numbers.problems("--arithmetic", "--cache-type").empty());
#endif
}

TEST_CASE("a model that is not set is told") {
  check_problem(ModelOptions().problems(), {"Model/Directory is not set", "name a run file"});
}
