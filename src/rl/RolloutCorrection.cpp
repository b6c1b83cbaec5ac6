// SPDX-License-Identifier: Apache-2.0
#include "rl/RolloutCorrection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/Text.hpp"

namespace taper {
namespace {

double bounded_exp(double x) {
  return std::exp(std::clamp(x, -20.0, 20.0));
}

// The log-ratios of a sample's loss tokens.
struct Ratios {
  std::vector<double> d;  // of all response tokens
  double sum = 0.0;       // over the loss tokens
  double count = 0.0;
};

std::vector<Ratios> ratios_of(const std::vector<Sample>& samples) {
  std::vector<Ratios> all;
  for (const Sample& s : samples) {
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

// Calls visit(sample, token) for each token that carries a loss.
template <class Visit>
void for_each_token(const std::vector<Sample>& samples, const Visit& visit) {
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (std::size_t t = 0; t < samples[i].response.size(); ++t)
      if (samples[i].carries_loss(t)) visit(i, t);
}

void measure(const std::vector<Sample>& samples, const std::vector<Ratios>& ratios,
             MismatchReport& report) {
  double tokens = 0.0, sequences = 0.0, k1 = 0.0, k3 = 0.0, squares = 0.0;
  for_each_token(samples, [&](std::size_t i, std::size_t t) {
    const double d = ratios[i].d[t];
    tokens += 1.0;
    k1 -= d;
    k3 += std::exp(d) - d - 1.0;
    squares += std::pow(bounded_exp(d), 2);
    report.log_ratio_abs_max = std::max(report.log_ratio_abs_max, std::abs(d));
  });
  double perplexity = 0.0, sequence_squares = 0.0;
  for (const Ratios& r : ratios) {
    if (r.count == 0.0) continue;
    sequences += 1.0;
    perplexity += std::exp(-r.sum / r.count);
    sequence_squares += std::pow(bounded_exp(r.sum), 2);
  }
  if (tokens == 0.0) return;
  report.kl = k1 / tokens;
  report.k3_kl = k3 / tokens;
  report.chi2_token = squares / tokens - 1.0;
  report.ppl_ratio = perplexity / sequences;
  report.chi2_seq = sequence_squares / sequences - 1.0;
}

// Means of token weights: over tokens, or over sequences where all tokens of one have the same.
double mean_weight(const std::vector<Sample>& samples, ImportanceLevel level) {
  double sum = 0.0, count = 0.0;
  for (const Sample& s : samples) {
    if (s.loss_tokens() == 0) continue;
    for (std::size_t t = 0; t < s.response.size(); ++t) {
      if (!s.carries_loss(t)) continue;
      sum += s.correction[t];
      count += 1.0;
      if (level == ImportanceLevel::kSequence) break;
    }
  }
  return count > 0.0 ? sum / count : 1.0;
}

void set_weights(std::vector<Sample>& samples, const std::vector<Ratios>& ratios,
                 const RolloutCorrectionOptions& o, MismatchReport& report) {
  double sum = 0.0, squares = 0.0, count = 0.0;
  report.weight_min = std::numeric_limits<double>::infinity();
  report.weight_max = 0.0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].correction.assign(samples[i].response.size(), 1.0f);
    for (std::size_t t = 0; t < ratios[i].d.size(); ++t) {
      const double d = o.weights == ImportanceLevel::kToken ? ratios[i].d[t] : ratios[i].sum;
      samples[i].correction[t] = static_cast<float>(std::min(bounded_exp(d), o.cap));
    }
  }
  for_each_token(samples, [&](std::size_t i, std::size_t t) {
    const double w = samples[i].correction[t];
    sum += w;
    squares += w * w;
    count += 1.0;
    report.weight_min = std::min(report.weight_min, w);
    report.weight_max = std::max(report.weight_max, w);
  });
  if (count == 0.0) report.weight_min = report.weight_max = 1.0;
  if (count == 0.0 || squares == 0.0) return;
  report.weight_mean = sum / count;
  report.effective_sample_size = sum * sum / (count * squares);
  if (!o.normalize) return;
  const double mean = mean_weight(samples, o.weights);
  if (mean > 1e-8)
    for (Sample& s : samples)
      for (float& w : s.correction) w = static_cast<float>(w / mean);
}

// The ratio that decides on a token.
double judged(const Ratios& r, std::size_t t, RejectionLevel level) {
  if (level == RejectionLevel::kToken) return bounded_exp(r.d[t]);
  return bounded_exp(level == RejectionLevel::kSequence ? r.sum : r.sum / r.count);
}

void reject(std::vector<Sample>& samples, const std::vector<Ratios>& ratios,
            const RolloutCorrectionOptions& o, MismatchReport& report) {
  double tokens = 0.0, rejected = 0.0, sequences = 0.0, touched = 0.0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Sample& s = samples[i];
    if (ratios[i].count == 0.0) continue;
    double here = 0.0;
    std::vector<std::uint8_t> mask(s.response.size(), 0);
    for (std::size_t t = 0; t < mask.size(); ++t) {
      if (!s.carries_loss(t)) continue;
      const double ratio = judged(ratios[i], t, o.rejection);
      mask[t] = ratio >= o.low && ratio <= o.high ? 1 : 0;
      here += mask[t] == 0 ? 1.0 : 0.0;
    }
    s.mask = std::move(mask);
    tokens += ratios[i].count;
    sequences += 1.0;
    rejected += here;
    touched += here > 0.0 ? 1.0 : 0.0;
  }
  if (tokens == 0.0) return;
  report.rejected_tokens = rejected / tokens;
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

std::vector<double> log_ratios(const Sample& s) {
  std::vector<double> d(s.response.size(), 0.0);
  for (std::size_t t = 0; t < s.kept_mass.size(); ++t)
    d[t] = std::log(static_cast<double>(s.kept_mass[t]));
  return d;
}

MismatchReport correct_rollout(std::vector<Sample>& samples, const RolloutCorrectionOptions& o) {
  const std::vector<Ratios> ratios = ratios_of(samples);
  MismatchReport report;
  measure(samples, ratios, report);
  if (o.weights != ImportanceLevel::kNone) set_weights(samples, ratios, o, report);
  if (o.rejection != RejectionLevel::kNone) reject(samples, ratios, o, report);
  return report;
}

}  // namespace taper
