// SPDX-License-Identifier: Apache-2.0
#include "results/HeldOutNames.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("figures behind the last iteration have names of their own") {
  CHECK(final_name("val/score/mean") == "val/score/final");
  CHECK(final_name("val/a/avg@4") == "val/a/final/avg@4");
  CHECK(final_name("val/reward/judge/latency_s/max") == "val/final/reward/judge/latency_s/max");
  for (const char* name : {"val/score/final", "val/a/final/avg@4", "val/final/reward/a/mean"})
    CHECK(is_final_name(name));
  for (const char* name : {"val/score/mean", "val/a/avg@4", "training/global_step", "val/loss"})
    CHECK(!is_final_name(name));
  for (const char* name : {"val/score/mean", "val/reward/a/mean", "val/final/reward/a/mean"})
    CHECK(held_out_meaning(name).empty());  // in the table of metrics
  CHECK_THAT(held_out_meaning("val/a/maj@4"), ContainsSubstring("most frequent"));
  CHECK_THAT(held_out_meaning("val/a/final/avg@4"), ContainsSubstring("last iteration"));
}
