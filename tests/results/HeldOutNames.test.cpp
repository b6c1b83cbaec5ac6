// SPDX-License-Identifier: Apache-2.0
#include "results/HeldOutNames.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("names are taken apart as they were built") {
  const std::pair<const char*, HeldOutName> names[] = {
      {"val/score/mean", {HeldOutSource::kPlainSet, "", "", false}},
      {"val/score/final", {HeldOutSource::kPlainSet, "", "", true}},
      {"val/gsm8k.test/avg@4", {HeldOutSource::kNamedSet, "gsm8k.test", "avg@4", false}},
      {"val/a/final/response_length", {HeldOutSource::kNamedSet, "a", "response_length", true}},
      {"val/final-set/avg@1", {HeldOutSource::kNamedSet, "final-set", "avg@1", false}},
      {"val/reward/judge/style/mean", {HeldOutSource::kRewards, "", "judge/style/mean", false}},
      {"val/final/reward/a/mean", {HeldOutSource::kRewards, "", "a/mean", true}}};
  for (const auto& [text, parts] : names) {
    INFO(text);
    CHECK(parse_held_out_name(text) == parts);
    CHECK(to_string(parts) == text);
  }
  for (const char* other : {"val/loss", "val/reward_chosen", "val/score/max", "val/final/avg@4",
                            "reward/a/mean", "training/global_step", "val", ""})
    CHECK(!parse_held_out_name(other));
}

TEST_CASE("a set's figures are called by their samples") {
  CHECK(held_out_name("a", avg_figure(4)) == "val/a/avg@4");
  CHECK(held_out_name("a", pass_figure(2)) == "val/a/pass@2");
  CHECK(held_out_name("a", maj_figure(4)) == "val/a/maj@4");
  CHECK(held_out_name("a", kLengthFigure) == "val/a/response_length");
  for (const char* set : {"score", "final", "reward"}) CHECK(is_taken_set_name(set));
  CHECK(!is_taken_set_name("scores"));
}

TEST_CASE("mean scores are those of sets, not of rewards") {
  for (const char* name : {"val/score/mean", "val/a/avg@4", "val/a/final/avg@4"})
    CHECK(parse_held_out_name(name)->is_mean_score());
  for (const char* name : {"val/a/pass@4", "val/a/response_length", "val/reward/avg/mean"})
    CHECK(!parse_held_out_name(name)->is_mean_score());
}

TEST_CASE("figures behind the last iteration have names of their own") {
  CHECK(final_name("val/score/mean") == "val/score/final");
  CHECK(final_name("val/a/avg@4") == "val/a/final/avg@4");
  CHECK(final_name("val/reward/judge/latency_s/max") == "val/final/reward/judge/latency_s/max");
  for (const char* name : {"val/score/final", "val/a/final/avg@4", "val/final/reward/a/mean"})
    CHECK(is_final_name(name));
  for (const char* name : {"val/score/mean", "val/a/avg@4", "training/global_step", "val/loss"})
    CHECK(!is_final_name(name));
}

TEST_CASE("figures of named sets say what they mean, others are in the table of metrics") {
  for (const char* name :
       {"val/score/mean", "val/reward/a/mean", "val/final/reward/a/mean", "val/loss"})
    CHECK(!held_out_meaning(name));
  CHECK_THAT(held_out_meaning("val/a/maj@4")->description, ContainsSubstring("most frequent"));
  CHECK_THAT(held_out_meaning("val/a/final/avg@4")->description,
             ContainsSubstring("last iteration"));
  CHECK(held_out_meaning("val/a/avg@4")->units == "1");
  CHECK(held_out_meaning("val/length/pass@4")->units == "1");
  CHECK(held_out_meaning("val/a/final/response_length")->units == "token");
}
