// SPDX-License-Identifier: Apache-2.0
#include "driver/IterationLog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

#include "io/Hdf5File.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using taper::test::Scratch;

TEST_CASE("figures of values are of the tokens that carry a loss") {
  Sample a, b, masked;
  a.response = {1, 2, 3};
  a.values = {1.0f, -2.0f, 90.0f};
  a.returns = {1.5f, 0.5f, 90.0f};
  a.advantages = {0.5f, 2.5f, 90.0f};
  a.mask = {1, 1, 0};
  b.response = {4};
  b.values = {4.0f};
  b.returns = {1.0f};
  b.advantages = {-3.0f};
  masked = a;
  masked.mask = {0, 0, 0};
  CHECK(value_metrics({masked}).empty());
  const auto list = value_metrics({a, masked, b});
  const std::map<std::string, double> values(list.begin(), list.end());
  CHECK(values.at("critic/values/mean") == 1.0);
  CHECK(values.at("critic/values/max") == 4.0);
  CHECK(values.at("critic/returns/min") == 0.5);
  CHECK(values.at("critic/advantages/mean") == 0.0);
  // Variances 0.25 of the returns, 7.75 of what is left of them.
  CHECK(values.at("critic/vf_explained_var") == 1.0 - 7.75 / (0.25 + 1e-5));
}

TEST_CASE("a flush brings all iterations so far into run.h5") {
  const Scratch scratch;
  IterationLog log(scratch.path(), "config", {}, 0);
  Sample sample;
  sample.response = {1, 2};
  for (const int iteration : {1, 2, 3})  // faster than the file is written by itself
    log.add(iteration, {{"training/global_step", iteration}}, {{"gen", 1.0, 1.0, 1.0}}, {sample});
  log.flush();
  const auto file = Hdf5File::open_read(scratch / "run.h5");
  CHECK(file.dims("/timing/gen") == Dims{3, 3});
  CHECK(file.dims("/metrics/training/global_step") == Dims{3});
}

TEST_CASE("a final evaluation counts until the next iteration") {
  const Scratch scratch;
  {
    IterationLog log(scratch.path(), "config", {}, 0);
    log.add(1, {{"training/global_step", 1.0}}, {}, {Sample()});
    CHECK(!log.has_final_evaluation());
    log.add_final_evaluation(1, {{"val/score/mean", 0.5}});
    log.flush();
  }
  IterationLog log(scratch.path(), "config", {}, 1);
  CHECK(log.has_final_evaluation());
  log.add(2, {{"training/global_step", 2.0}}, {}, {Sample()});
  CHECK(!log.has_final_evaluation());
}

TEST_CASE("a log of metrics that was removed is told") {
  const Scratch scratch;
  CHECK(IterationLog::lost_metrics(scratch.path()).empty());
  IterationLog(scratch.path(), "config", {}, 0).flush();
  CHECK(IterationLog::lost_metrics(scratch.path()).empty());
  std::filesystem::remove(scratch / "metrics.jsonl");
  CHECK_THAT(IterationLog::lost_metrics(scratch.path()),
             Catch::Matchers::ContainsSubstring("metrics.jsonl is missing"));
}

TEST_CASE("the first iteration of a run is known, however many jobs it takes") {
  const Scratch scratch;
  const auto add = [](IterationLog& log, std::int64_t iteration) {
    log.add(iteration, {{"training/global_step", static_cast<double>(iteration)}}, {}, {Sample()});
  };
  {
    IterationLog log(scratch.path(), "config", {}, 4);  // from another run's checkpoint
    CHECK(log.first_iteration() == 5);
    log.add_final_evaluation(4, {{"val/score/mean", 0.5}});  // of what the run began with
    add(log, 5);
    add(log, 6);
    log.flush();
  }
  CHECK(IterationLog(scratch.path(), "config", {}, 6).first_iteration() == 5);
  CHECK(IterationLog(scratch.path(), "config", {}, 0).first_iteration() == 1);
}
