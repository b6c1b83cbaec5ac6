// SPDX-License-Identifier: Apache-2.0
#include "rl/Advantage.hpp"

#include <cmath>
#include <numeric>
#include <span>

#include "base/Error.hpp"
#include "rl/Gae.hpp"
#include "rl/Moments.hpp"

namespace taper {
namespace {

using Estimator = AdvantageEstimator;
using Normalization = AdvantageNormalization;

// Added to the deviations of groups and of samples, as verl does.
constexpr double kEpsilon = 1e-6;

// Rewards of samples less the baseline of their group: its mean, or the mean of the others. A group
// of one has baseline 0.
std::vector<double> centre_groups(const std::vector<SampleSummary>& samples,
                                  const std::vector<double>& rewards, Estimator estimator) {
  std::vector<double> centred = rewards;
  for_each_group(samples, [&](std::size_t begin, std::size_t end) {
    const double n = static_cast<double>(end - begin);
    if (end - begin == 1) return;
    const double mean = moments_of({rewards.data() + begin, end - begin}).mean;
    // r - mean of the others = (r - mean) n / (n - 1)
    const double scale = estimator == Estimator::kRloo ? n / (n - 1.0) : 1.0;
    for (std::size_t i = begin; i < end; ++i) centred[i] = (rewards[i] - mean) * scale;
  });
  return centred;
}

// A deviation of a group of one is 1.
void divide_by_group(const std::vector<SampleSummary>& samples, const std::vector<double>& rewards,
                     std::vector<double>& values) {
  for_each_group(samples, [&](std::size_t begin, std::size_t end) {
    const std::size_t n = end - begin;
    const double variance = n > 1 ? moments_of({rewards.data() + begin, n}).variance : 1.0;
    for (std::size_t i = begin; i < end; ++i) values[i] /= std::sqrt(variance) + kEpsilon;
  });
}

// One value per sample: GRPO by the deviation of all rewards, RLOO whitened.
void normalize_by_batch(const AdvantageOptions& o, const std::vector<double>& rewards,
                        std::vector<double>& values) {
  if (values.size() < 2) return;
  if (o.estimator == Estimator::kRloo) {
    const Moments m = moments_of(values);
    for (double& v : values) v = (v - m.mean) / (std::sqrt(m.variance) + kEpsilon);
  } else {
    const double deviation = std::sqrt(moments_of(rewards).variance) + kEpsilon;
    for (double& v : values) v /= deviation;
  }
}

std::vector<double> returns_to_go(const std::vector<double>& rewards, double gamma) {
  std::vector<double> returns(rewards.size());
  double running = 0.0;
  for (std::size_t t = rewards.size(); t-- > 0;)
    returns[t] = running = rewards[t] + gamma * running;
  return returns;
}

// Whether tokens of a response have advantages of their own.
bool sees_tokens(Estimator estimator) {
  return estimator == Estimator::kReinforcePlusPlus || estimator == Estimator::kGae;
}

// Before normalization, as all that follows by samples.here().
std::vector<std::vector<double>> token_advantages(SampleSet& samples,
                                                  const std::vector<std::vector<double>>& rewards,
                                                  const AdvantageOptions& o) {
  std::vector<std::vector<double>> values;
  for (std::size_t k = 0; k < rewards.size(); ++k) {
    if (o.estimator == Estimator::kReinforcePlusPlus) {
      values.push_back(returns_to_go(rewards[k], o.gamma));
      continue;
    }
    Sample& s = samples.here()[k];
    GaeEstimate estimate = gae(rewards[k], s.values, o.gamma, o.lambda);
    s.returns.assign(estimate.returns.begin(), estimate.returns.end());
    values.push_back(std::move(estimate.advantages));
  }
  return values;
}

// One value per response, for all its tokens; before whitening. Collective over the ranks of the
// samples.
std::vector<std::vector<double>> response_advantages(
    const SampleSet& samples, const std::vector<std::vector<double>>& rewards,
    const AdvantageOptions& o) {
  const Normalization normalization = o.normalization_used();
  const std::vector<double> totals = samples.gather([&](std::size_t k) {
    return rewards[k].empty() ? samples.here()[k].reward
                              : std::accumulate(rewards[k].begin(), rewards[k].end(), 0.0);
  });
  std::vector<double> centred = centre_groups(samples.all(), totals, o.estimator);
  if (normalization == Normalization::kGroup) divide_by_group(samples.all(), totals, centred);
  if (normalization == Normalization::kBatch &&
      o.estimator != Estimator::kReinforcePlusPlusBaseline)
    normalize_by_batch(o, totals, centred);
  std::vector<std::vector<double>> values;
  for (std::size_t k = 0; k < rewards.size(); ++k)
    values.emplace_back(rewards[k].size(), centred[samples.rows()[k]]);
  return values;
}

// Over all tokens that carry a loss; the others get values of the same scale, which nobody reads.
// Collective over the ranks of the samples.
void whiten_tokens(const SampleSet& samples, std::vector<std::vector<double>>& values) {
  const auto sum = [&](const auto& term) {
    return sum_over_tokens(samples, [&](auto k, auto t) { return term(values[k][t]); });
  };
  const double count = sum([](double) { return 1.0; });
  const double mean = count > 0.0 ? sum([](double v) { return v; }) / count : 0.0;
  const double squares = sum([&](double v) { return (v - mean) * (v - mean); });
  const double variance = count > 1.0 ? squares / (count - 1.0) : 0.0;
  const double scale = 1.0 / std::sqrt(variance + 1e-8);
  for (auto& list : values)
    for (double& v : list) v = (v - mean) * scale;
}

std::string name_of(Estimator wanted) {
  for (const auto& [name, estimator] : named_estimators())
    if (estimator == wanted) return name;
  return "";
}

}  // namespace

std::vector<std::pair<std::string, Estimator>> named_estimators() {
  return {{"grpo", Estimator::kGrpo},
          {"dr-grpo", Estimator::kDrGrpo},
          {"rloo", Estimator::kRloo},
          {"reinforce++", Estimator::kReinforcePlusPlus},
          {"reinforce++-baseline", Estimator::kReinforcePlusPlusBaseline},
          {"gae", Estimator::kGae}};
}

std::vector<std::pair<std::string, Normalization>> named_normalizations() {
  return {{"default", Normalization::kDefault},
          {"group", Normalization::kGroup},
          {"batch", Normalization::kBatch},
          {"none", Normalization::kNone}};
}

Normalization AdvantageOptions::normalization_used() const {
  if (normalization != Normalization::kDefault) return normalization;
  switch (estimator) {
    case Estimator::kGrpo:
      return Normalization::kGroup;
    case Estimator::kDrGrpo:
    case Estimator::kRloo:
      return Normalization::kNone;
    case Estimator::kReinforcePlusPlus:
    case Estimator::kReinforcePlusPlusBaseline:
    case Estimator::kGae:
      break;
  }
  return Normalization::kBatch;
}

std::vector<std::string> AdvantageOptions::problems() const {
  std::vector<std::string> list;
  const std::string name = name_of(estimator);
  const Normalization used = normalization_used();
  if (estimator == Estimator::kDrGrpo && used != Normalization::kNone)
    list.push_back(
        "Algorithm/Advantage Normalization does not fit Algorithm/Estimator dr-grpo (which is GRPO "
        "without a division); leave it at default, or set the estimator to grpo");
  else if (estimator != Estimator::kGrpo && used == Normalization::kGroup)
    list.push_back("Algorithm/Advantage Normalization is group, but Algorithm/Estimator is " +
                   name +
                   " (only grpo divides by the deviation of groups); set it to batch, none "
                   "or default");
  if (gamma != 1.0 && !sees_tokens(estimator))
    list.push_back("Algorithm/Gamma is not 1, but Algorithm/Estimator is " + name +
                   " (only gae and reinforce++ discount rewards); set it to 1, or the estimator to "
                   "one of these");
  if (lambda != 1.0 && estimator != Estimator::kGae)
    list.push_back("Algorithm/Lambda is not 1, but Algorithm/Estimator is " + name +
                   " (only gae has it); set it to 1, or the estimator to gae");
  return list;
}

void set_advantages(SampleSet& samples, const std::vector<std::vector<double>>& rewards,
                    const AdvantageOptions& o) {
  TAPER_EXPECT(samples.here().size() == rewards.size());
  std::vector<std::vector<double>> values = sees_tokens(o.estimator)
                                                ? token_advantages(samples, rewards, o)
                                                : response_advantages(samples, rewards, o);
  const bool whitens =
      sees_tokens(o.estimator) || o.estimator == Estimator::kReinforcePlusPlusBaseline;
  if (whitens && o.normalization_used() == Normalization::kBatch) whiten_tokens(samples, values);
  for (std::size_t k = 0; k < values.size(); ++k)
    samples.here()[k].advantages.assign(values[k].begin(), values[k].end());
}

}  // namespace taper
