// SPDX-License-Identifier: Apache-2.0
#include "rl/RewardVariance.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>

#include "base/Error.hpp"
#include "base/Random.hpp"

using namespace taper;

namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squares_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double v : values) sum += (v - mean_of(values)) * (v - mean_of(values));
  return sum;
}

bool close(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) < 1e-12; });
}

// The largest sum of squares over the corners of what is allowed. A convex function of values in
// order with a fixed mean is largest where all but one block are at a bound: every choice of the
// blocks at `high`, of the one between, and of those at `low` is tried.
double largest_squares(std::vector<double> rewards, double low, double high) {
  std::sort(rewards.begin(), rewards.end(), std::greater<>());
  const auto n = static_cast<double>(rewards.size());
  const double total = mean_of(rewards) * n;
  double best = -1.0;
  for (std::size_t begin = 0; begin <= rewards.size(); ++begin)
    for (std::size_t end = begin; end <= rewards.size(); ++end) {
      // [0, begin) high, [begin, end) equal, the rest low; blocks of equal rewards stay together.
      const auto splits = [&](std::size_t at) {
        return at > 0 && at < rewards.size() && rewards[at] == rewards[at - 1];
      };
      if (splits(begin) || splits(end)) continue;
      const double rest = total - high * static_cast<double>(begin) -
                          low * static_cast<double>(rewards.size() - end);
      std::vector<double> z(rewards.size(), low);
      std::fill_n(z.begin(), begin, high);
      if (end > begin) {
        const double value = rest / static_cast<double>(end - begin);
        if (value < low - 1e-12 || value > high + 1e-12) continue;
        std::fill(z.begin() + static_cast<std::ptrdiff_t>(begin),
                  z.begin() + static_cast<std::ptrdiff_t>(end), value);
      } else if (std::abs(rest) > 1e-12) {
        continue;
      }
      best = std::max(best, squares_of(z));
    }
  return best;
}

std::vector<double> random_rewards(RandomStream& random) {
  std::vector<double> rewards;
  const auto n = static_cast<int>(random.between(1, 9));
  const bool coarse = random.below(2) == 0;  // with equal ones
  for (int i = 0; i < n; ++i)
    rewards.push_back(coarse ? 0.25 * static_cast<double>(random.below(5)) : random.uniform());
  return rewards;
}

}  // namespace

TEST_CASE("spread rewards have the largest variance in their order, with their mean") {
  RandomStream random(1, RandomPurpose::kTest, 0, 0);
  for (int i = 0; i < 3000; ++i) {
    const std::vector<double> rewards = random_rewards(random);
    const double low = i % 3 == 0 ? -1.0 : 0.0, high = i % 2 == 0 ? 1.0 : 2.5;
    const std::vector<double> z = spread_rewards(rewards, low, high);
    CHECK(std::abs(mean_of(z) - mean_of(rewards)) < 1e-12);
    for (std::size_t a = 0; a < z.size(); ++a) {
      CHECK((z[a] >= low && z[a] <= high));
      for (std::size_t b = 0; b < z.size(); ++b) {
        if (rewards[a] > rewards[b]) CHECK(z[a] >= z[b]);
        if (rewards[a] == rewards[b]) CHECK(z[a] == z[b]);
      }
    }
    CHECK(squares_of(z) >= squares_of(rewards) - 1e-12);
    CHECK(std::abs(squares_of(z) - largest_squares(rewards, low, high)) < 1e-9);
    // Once more changes nothing.
    const std::vector<double> again = spread_rewards(z, low, high);
    for (std::size_t k = 0; k < z.size(); ++k) CHECK(std::abs(again[k] - z[k]) < 1e-9);
  }
}

TEST_CASE("spread rewards by hand") {
  const auto spread = [](const std::vector<double>& rewards, double low, double high) {
    return spread_rewards(rewards, low, high);
  };
  CHECK(close(spread({0.2, 0.4, 0.6, 0.8}, 0, 1), {0, 0, 1, 1}));
  CHECK(close(spread({0.5, 0.5, 0.5, 0.5}, 0, 1), {0.5, 0.5, 0.5, 0.5}));
  CHECK(close(spread({1, 0, 0, 1}, 0, 1), {1, 0, 0, 1}));
  CHECK(close(spread({0.1, 0.9, 0.5, 0.5}, 0, 1), {0, 1, 0.5, 0.5}));
  CHECK(close(spread({3, 3}, 3, 3), {3, 3}));
}

namespace {

SampleSet samples_with(const std::vector<std::vector<float>>& groups) {
  std::vector<Sample> samples;
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t i = 0; i < groups[g].size(); ++i) {
      Sample s;
      s.id.prompt = static_cast<int>(g);
      s.id.sample = static_cast<int>(i);
      s.score = groups[g][i];
      samples.push_back(std::move(s));
    }
  return SampleSet(std::move(samples));
}

}  // namespace

TEST_CASE("each group is adjusted by itself, in the range of all scores or in one that is set") {
  const SampleSet samples = samples_with({{0.25f, 0.5f, 0.75f, 0.5f}, {0.0f, 2.0f}, {1.0f}});
  RewardAdjustmentOptions options;
  RewardAdjustmentReport report;
  CHECK(close(adjusted_scores(samples, options, report), {0.25, 0.5, 0.75, 0.5, 0.0, 2.0, 1.0}));
  CHECK(report.winners == 0.0);
  options.how = RewardAdjustment::kVariance;
  // Of four samples with a mean of a quarter of the range, one wins.
  CHECK(close(adjusted_scores(samples, options, report), {0.0, 0.0, 2.0, 0.0, 0.0, 2.0, 1.0}));
  CHECK(std::abs(report.winners - 0.5 * (0.25 + 0.5)) < 1e-12);
  CHECK(report.variance_after > report.variance_before);
  options.low = 0.0;
  options.high = 1.0;
  CHECK_THROWS_AS(adjusted_scores(samples, options, report), Error);
  options.high = 4.0;
  CHECK(adjusted_scores(samples, options, report)[5] > 1.999);
  CHECK(options.problems().empty());
  options.low = 5.0;
  CHECK(options.problems().size() == 1);
  options.how = RewardAdjustment::kNone;
  CHECK(options.problems().size() == 1);
}

namespace {

// Steps until a softmax policy over ten arms, whose rewards lie close together, has nine tenths of
// what there is to gain; advantages are rewards less the mean of a group of 16 (as dr-grpo has).
int steps_of_bandit(int seed, bool adjusts) {
  constexpr int kArms = 10, kGroup = 16;
  RandomStream random(static_cast<std::uint64_t>(seed), RandomPurpose::kTest, 0, 0);
  std::vector<double> reward(kArms), theta(kArms, 0.0), probability(kArms);
  for (double& r : reward) r = 0.5 + 0.1 * random.uniform();
  const double first = mean_of(reward), most = *std::ranges::max_element(reward);
  for (int step = 1;; ++step) {
    double total = 0.0, expected = 0.0;
    for (int a = 0; a < kArms; ++a) total += probability[a] = std::exp(theta[a]);
    for (int a = 0; a < kArms; ++a) expected += reward[a] * (probability[a] /= total);
    if (expected >= first + 0.9 * (most - first) || step == 100'000) return step;
    std::vector<int> arms;
    std::vector<double> rewards;
    for (int i = 0; i < kGroup; ++i) {
      double left = random.uniform();
      int arm = 0;
      while (arm + 1 < kArms && (left -= probability[arm]) > 0.0) ++arm;
      arms.push_back(arm);
      rewards.push_back(reward[arm]);
    }
    if (adjusts) rewards = spread_rewards(rewards, 0.0, 1.0);
    const double mean = mean_of(rewards);
    for (int i = 0; i < kGroup; ++i)
      for (int a = 0; a < kArms; ++a)
        theta[a] += (rewards[i] - mean) * ((a == arms[i] ? 1.0 : 0.0) - probability[a]) / kGroup;
  }
}

}  // namespace

TEST_CASE("a bandit whose rewards differ little learns in fewer steps from spread rewards") {
  std::vector<double> ratios;
  for (int seed = 1; seed <= 21; ++seed)
    ratios.push_back(static_cast<double>(steps_of_bandit(seed, true)) /
                     steps_of_bandit(seed, false));
  std::ranges::sort(ratios);
  INFO("steps, relative: " << ratios.front() << " to " << ratios.back() << ", median "
                           << ratios[10]);
  CHECK(ratios[10] <= 0.8);
}
