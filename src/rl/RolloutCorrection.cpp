// SPDX-License-Identifier: Apache-2.0
#include "rl/RolloutCorrection.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/Text.hpp"

namespace taper {
namespace {

double bounded_exp(double x) {
  return std::exp(std::clamp(x, -20.0, 20.0));
}

// d of each response token: its log-prob in training less the one of the distribution that drew it.
// The former is the rollout's own full-softmax log-prob (the exactness contract), the latter has
// what sampling cut off renormalized: d is the logarithm of the kept mass, 0 if nothing is cut.
std::vector<double> log_ratios(const Sample& s) {
  std::vector<double> d(s.response.size(), 0.0);
  for (std::size_t t = 0; t < s.kept_mass.size(); ++t)
    d[t] = std::log(static_cast<double>(s.kept_mass[t]));
  return d;
}

// The log-ratios of a sample's loss tokens.
struct Ratios {
  std::vector<double> d;  // of all response tokens
  double sum = 0.0;       // over the loss tokens
  double count = 0.0;
};

// Of samples.here().
std::vector<Ratios> ratios_of(const SampleSet& samples) {
  std::vector<Ratios> all;
  for (const Sample& s : samples.here()) {
    Ratios r;
    r.d = log_ratios(s);
    for (std::size_t t = 0; t < r.d.size(); ++t) {
      if (!s.carries_loss(t)) continue;
      r.sum += r.d[t];
      r.count += 1.0;
    }
    all.push_back(std::move(r));
  }
  return all;
}

// Sums over the loss tokens of one sample.
struct RatioSums {
  double tokens = 0.0, d = 0.0, k3 = 0.0, squares = 0.0, largest = 0.0;
};

// Of all samples, in their order. Collective over the ranks of the samples.
std::vector<RatioSums> gather_sums(const SampleSet& samples, const std::vector<Ratios>& ratios) {
  return samples.gather([&](std::size_t k) {
    RatioSums sums{ratios[k].count, ratios[k].sum};
    for (std::size_t t = 0; t < ratios[k].d.size(); ++t) {
      if (!samples.here()[k].carries_loss(t)) continue;
      const double d = ratios[k].d[t];
      sums.k3 += std::exp(d) - d - 1.0;
      sums.squares += std::pow(bounded_exp(d), 2);
      sums.largest = std::max(sums.largest, std::abs(d));
    }
    return sums;
  });
}

void measure(const std::vector<RatioSums>& samples, MismatchReport& report) {
  double tokens = 0.0, sequences = 0.0, k1 = 0.0, k3 = 0.0, squares = 0.0;
  double perplexity = 0.0, sequence_squares = 0.0;
  for (const RatioSums& s : samples) {
    if (s.tokens == 0.0) continue;
    tokens += s.tokens;
    k1 -= s.d;
    k3 += s.k3;
    squares += s.squares;
    report.log_ratio_abs_max = std::max(report.log_ratio_abs_max, s.largest);
    sequences += 1.0;
    perplexity += std::exp(-s.d / s.tokens);
    sequence_squares += std::pow(bounded_exp(s.d), 2);
  }
  if (tokens == 0.0) return;
  report.kl = k1 / tokens;
  report.k3_kl = k3 / tokens;
  report.chi2_token = squares / tokens - 1.0;
  report.ppl_ratio = perplexity / sequences;
  report.chi2_seq = sequence_squares / sequences - 1.0;
}

// Over the weights of the loss tokens of one sample; all zero if there is none.
struct WeightSums {
  double count = 0.0, sum = 0.0, squares = 0.0, smallest = 0.0, largest = 0.0;
  double first = 0.0;  // the weight of its first loss token
};

WeightSums weight_sums(const Sample& s) {
  WeightSums sums;
  for (std::size_t t = 0; t < s.correction.size(); ++t) {
    if (!s.carries_loss(t)) continue;
    const double w = s.correction[t];
    if (sums.count == 0.0) sums.smallest = sums.largest = sums.first = w;
    sums.count += 1.0;
    sums.sum += w;
    sums.squares += w * w;
    sums.smallest = std::min(sums.smallest, w);
    sums.largest = std::max(sums.largest, w);
  }
  return sums;
}

// Sets the corrections, and their figures in the report. Collective over the ranks of the samples.
void set_weights(SampleSet& samples, const std::vector<Ratios>& ratios,
                 const RolloutCorrectionOptions& o, MismatchReport& report) {
  std::vector<Sample>& here = samples.here();
  for (std::size_t k = 0; k < here.size(); ++k) {
    here[k].correction.assign(here[k].response.size(), 1.0f);
    for (std::size_t t = 0; t < ratios[k].d.size(); ++t) {
      const double d = o.weights == ImportanceLevel::kToken ? ratios[k].d[t] : ratios[k].sum;
      here[k].correction[t] = static_cast<float>(std::min(bounded_exp(d), o.cap));
    }
  }
  const auto by_sample = samples.gather([&](std::size_t k) { return weight_sums(here[k]); });
  double sum = 0.0, squares = 0.0, count = 0.0, sequence_sum = 0.0, sequences = 0.0;
  for (const WeightSums& s : by_sample) {
    if (s.count == 0.0) continue;
    report.weight_min = count == 0.0 ? s.smallest : std::min(report.weight_min, s.smallest);
    report.weight_max = count == 0.0 ? s.largest : std::max(report.weight_max, s.largest);
    count += s.count;
    sum += s.sum;
    squares += s.squares;
    sequence_sum += s.first;
    sequences += 1.0;
  }
  if (count == 0.0 || squares == 0.0) return;
  report.weight_mean = sum / count;
  report.effective_sample_size = sum * sum / (count * squares);
  if (!o.normalize) return;
  // Over sequences if all tokens of one have the same weight.
  const double mean =
      o.weights == ImportanceLevel::kSequence ? sequence_sum / sequences : report.weight_mean;
  if (mean > 1e-8)
    for (Sample& s : here)
      for (float& w : s.correction) w = static_cast<float>(w / mean);
}

// The ratio that decides on a token.
double judged(const Ratios& r, std::size_t t, RejectionLevel level) {
  if (level == RejectionLevel::kToken) return bounded_exp(r.d[t]);
  return bounded_exp(level == RejectionLevel::kSequence ? r.sum : r.sum / r.count);
}

// Loss tokens of one sample, and those of them that are rejected.
struct RejectionCounts {
  double tokens = 0.0, rejected = 0.0;
};

// Masks tokens by their ratio, and counts them in the report. Collective over the ranks of the
// samples.
void reject(SampleSet& samples, const std::vector<Ratios>& ratios,
            const RolloutCorrectionOptions& o, MismatchReport& report) {
  std::vector<RejectionCounts> counts;  // of samples.here()
  for (std::size_t k = 0; k < ratios.size(); ++k) {
    Sample& s = samples.here()[k];
    counts.push_back({ratios[k].count, 0.0});
    if (ratios[k].count == 0.0) continue;
    std::vector<std::uint8_t> mask(s.response.size(), 0);
    for (std::size_t t = 0; t < mask.size(); ++t) {
      if (!s.carries_loss(t)) continue;
      const double ratio = judged(ratios[k], t, o.rejection);
      mask[t] = ratio >= o.low && ratio <= o.high ? 1 : 0;
      counts.back().rejected += mask[t] == 0 ? 1.0 : 0.0;
    }
    s.mask = std::move(mask);
  }
  const auto by_sample = samples.gather([&](std::size_t k) { return counts[k]; });
  double tokens = 0.0, sum = 0.0, sequences = 0.0, touched = 0.0;
  for (const RejectionCounts& s : by_sample) {
    if (s.tokens == 0.0) continue;
    tokens += s.tokens;
    sequences += 1.0;
    sum += s.rejected;
    touched += s.rejected > 0.0 ? 1.0 : 0.0;
  }
  if (tokens == 0.0) return;
  report.rejected_tokens = sum / tokens;
  report.rejected_sequences = touched / sequences;
}

}  // namespace

std::vector<std::pair<std::string, ImportanceLevel>> named_importance_levels() {
  return {{"none", ImportanceLevel::kNone},
          {"token", ImportanceLevel::kToken},
          {"sequence", ImportanceLevel::kSequence}};
}

std::vector<std::pair<std::string, RejectionLevel>> named_rejection_levels() {
  return {{"none", RejectionLevel::kNone},
          {"token", RejectionLevel::kToken},
          {"sequence", RejectionLevel::kSequence},
          {"geometric", RejectionLevel::kGeometric}};
}

std::vector<std::string> RolloutCorrectionOptions::problems() const {
  std::vector<std::string> list;
  if (normalize && weights == ImportanceLevel::kNone)
    list.push_back(
        "Algorithm/Importance Normalization is on, but Algorithm/Importance Weights are none "
        "(there "
        "is nothing to normalize); set them to token or sequence");
  if (rejection != RejectionLevel::kNone && !(low <= 1.0 && high >= 1.0))
    list.push_back(format_text(
        "Algorithm/Rejection Low is %g and Algorithm/Rejection High %g (the band must contain 1, "
        "the ratio of tokens that were drawn from the trained distribution)",
        low, high));
  return list;
}

MismatchReport correct_rollout(SampleSet& samples, const RolloutCorrectionOptions& o) {
  const std::vector<Ratios> ratios = ratios_of(samples);
  MismatchReport report;
  measure(gather_sums(samples, ratios), report);
  if (o.weights != ImportanceLevel::kNone) set_weights(samples, ratios, o, report);
  if (o.rejection != RejectionLevel::kNone) reject(samples, ratios, o, report);
  return report;
}

}  // namespace taper
