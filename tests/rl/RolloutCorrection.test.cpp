// SPDX-License-Identifier: Apache-2.0
#include "rl/RolloutCorrection.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "rl/GoldenRl.hpp"

using namespace taper;
using namespace taper::test;

namespace {

RolloutCorrectionOptions options_of(const Json& c) {
  RolloutCorrectionOptions o;
  o.weights = named(named_importance_levels(), c["weights"]);
  o.rejection = named(named_rejection_levels(), c["rejection"]);
  o.cap = c["cap"].get<double>();
  o.normalize = c["normalize"].get<bool>();
  o.low = c["low"].get<double>();
  o.high = c["high"].get<double>();
  return o;
}

void check_metrics(const MismatchReport& r, const Json& metrics) {
  const auto check = [&](const char* name, double value) {
    INFO(name);
    if (metrics.contains(name)) CHECK(value == near(metrics[name].get<double>()));
  };
  check("kl", r.kl);
  check("k3_kl", r.k3_kl);
  check("ppl_ratio", r.ppl_ratio);
  check("chi2_token", r.chi2_token);
  check("chi2_seq", r.chi2_seq);
  check("log_ratio_abs_max", r.log_ratio_abs_max);
  check("weight_mean", r.weight_mean);
  check("weight_min", r.weight_min);
  check("weight_max", r.weight_max);
  check("effective_sample_size", r.effective_sample_size);
  check("rejected_tokens", r.rejected_tokens);
  check("rejected_sequences", r.rejected_sequences);
}

}  // namespace

TEST_CASE("importance weights, rejected tokens and their metrics are those of PyTorch") {
  const Json& cases = golden_rl()["corrections"];
  REQUIRE(cases.size() == 30);
  for (const Json& c : cases) {
    INFO(c["batch"] << " " << c["weights"] << " " << c["rejection"]);
    SampleSet set(golden_samples(c["batch"], c["mask_truncated"].get<bool>()));
    const std::vector<Sample>& samples = set.here();
    const RolloutCorrectionOptions options = options_of(c);
    CHECK(options.problems().empty());
    check_metrics(correct_rollout(set, options), c["metrics"]);
    for (std::size_t i = 0; i < samples.size(); ++i)
      for (std::size_t t = 0; t < samples[i].response.size(); ++t) {
        CHECK(samples[i].carries_loss(t) == (c["mask"][i][t].get<double>() == 1.0));
        if (!samples[i].carries_loss(t)) continue;
        const float weight = samples[i].correction.empty() ? 1.0f : samples[i].correction[t];
        CHECK(weight == near(c["values"][i][t].get<double>()));
      }
  }
}

TEST_CASE("without truncated sampling all weights are one, and nothing is rejected") {
  SampleSet set(golden_samples("ragged", false));
  std::vector<Sample>& samples = set.here();
  for (Sample& s : samples) s.kept_mass.assign(s.response.size(), 1.0f);
  RolloutCorrectionOptions options;
  options.weights = ImportanceLevel::kSequence;
  options.rejection = RejectionLevel::kToken;
  options.normalize = true;
  const MismatchReport report = correct_rollout(set, options);
  for (const Sample& s : samples) {
    CHECK(s.correction == std::vector<float>(s.response.size(), 1.0f));
    CHECK(s.loss_tokens() == std::ssize(s.response));
  }
  CHECK(report.kl == 0.0);
  CHECK(report.chi2_seq == 0.0);
  CHECK(report.log_ratio_abs_max == 0.0);
  CHECK(report.effective_sample_size == 1.0);
}

TEST_CASE("samples that carry no loss, or have no response, are passed over") {
  auto samples = golden_samples("odd", false);
  for (Sample& s : samples) s.mask.assign(s.response.size(), 0);
  samples.emplace_back().id.prompt = 1000;
  SampleSet set(samples);
  RolloutCorrectionOptions options;
  options.weights = ImportanceLevel::kSequence;
  options.rejection = RejectionLevel::kGeometric;
  options.normalize = true;
  const MismatchReport report = correct_rollout(set, options);
  CHECK(report.kl == 0.0);
  CHECK(report.weight_min == 1.0);
  CHECK(std::isfinite(report.effective_sample_size));
  for (const Sample& s : set.here()) CHECK(s.loss_tokens() == 0);
}

TEST_CASE("bands without one, and normalization without weights, are refused") {
  RolloutCorrectionOptions o;
  CHECK(o.problems().empty());
  o.normalize = true;
  CHECK(o.problems().size() == 1);
  o.weights = ImportanceLevel::kToken;
  CHECK(o.problems().empty());
  o.rejection = RejectionLevel::kToken;
  o.low = 1.5;
  REQUIRE(o.problems().size() == 1);
  CHECK(o.problems().front().find("Algorithm/Rejection Low is 1.5") != std::string::npos);
}
