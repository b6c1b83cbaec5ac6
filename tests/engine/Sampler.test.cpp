// SPDX-License-Identifier: Apache-2.0
#include "engine/Sampler.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "base/Random.hpp"
#include "comm/Collectives.hpp"
#include "device/Runtime.hpp"
#include "engine/SmallConfig.hpp"

using namespace taper;
using taper::test::config_of;

namespace {

constexpr ControlWord kWord = 0xfedcba9876543210u;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// The shard of some logits that a rank of `group` would hold, with their statistics.
struct ShardedLogits {
  ShardedLogits(const std::vector<std::vector<float>>& rows, int valid_ids, const Group& group,
                float temperature)
      : table(config_of(static_cast<int>(rows.front().size()))),
        parallel(table, group, Arithmetic::kF32) {
    set_float_mode();
    const Range blocks = parallel.shard().vocab();
    const int n = static_cast<int>(rows.size()), columns = blocks.size() * kVocabBlock;
    local.assign(static_cast<std::size_t>(n) * columns,
                 77.0f);  // rows beyond the vocabulary hold anything
    max.resize(n);
    for (int r = 0; r < n; ++r)
      for (int c = 0; c < columns; ++c)
        if (const std::size_t id = blocks.begin * kVocabBlock + c; id < rows[r].size())
          local[r * columns + c] = rows[r][id];
    logits.logits = make_matrix(local.data(), n, columns);
    logits.max = FloatVector(max.data(), n);
    const int valid = parallel.shard().valid_vocab(valid_ids);
    scale_logits(exec, logits.logits, logits.max, valid, temperature);
    all_reduce_max(group, logits.max);
    logits.host_max = max;
    std::vector<std::int64_t> mine(n);
    sum_masses(exec, VectorView<std::int64_t, HostExec>(mine.data(), n), logits.logits, logits.max,
               valid);
    logits.shard_mass.resize(static_cast<std::size_t>(n) * group.size());
    all_gather(group, logits.shard_mass, mine);
    logits.mass.assign(n, 0);
    for (std::size_t i = 0; i < logits.shard_mass.size(); ++i)
      logits.mass[i % n] += logits.shard_mass[i];
  }

  HostExec exec;
  ParamTable table;
  ModelParallel parallel;
  std::vector<float> local, max;
  RowLogits logits;
};

std::vector<DrawnToken> draw(const std::vector<std::vector<float>>& rows, int valid_ids,
                             const Group& group, const std::vector<Draw>& draws,
                             const SamplingOptions& options) {
  const float temperature = options.temperature > 0 ? options.temperature : 1.0f;
  const ShardedLogits l(rows, valid_ids, group, temperature);
  StepExchange exchange(group, kWord + group.rank());
  const auto tokens =
      draw_tokens(l.exec, l.parallel, l.logits, valid_ids, draws, options, exchange);
  const std::uint64_t exchanges = group.number();
  CHECK(exchange.leader_word() == kWord);
  CHECK(group.number() == exchanges);  // it came with the tokens
  return tokens;
}

bool same(const std::vector<DrawnToken>& a, const std::vector<DrawnToken>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(DrawnToken)) == 0;
}

std::vector<double> softmax(const std::vector<float>& logits, int valid, double temperature) {
  std::vector<double> p(logits.size(), 0.0);
  double max = kNone, sum = 0;
  for (int i = 0; i < valid; ++i) max = std::max<double>(max, logits[i]);
  for (int i = 0; i < valid; ++i) sum += p[i] = std::exp((logits[i] - max) / temperature);
  for (double& x : p) x /= sum;
  return p;
}

// True if counts of n draws fit p: chi-square below its 1e-4 quantile (Wilson and Hilferty);
// rare cells are merged.
bool fits(const std::vector<int>& counts, const std::vector<double>& p, int n) {
  double chi = 0, rare = 0;
  int cells = 0, rare_count = 0;
  const auto cell = [&](double expected, int count) {
    chi += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0 && counts[i] > 0) return false;
    if (p[i] * n >= 10) {
      cell(p[i] * n, counts[i]);
    } else {
      rare += p[i] * n;
      rare_count += counts[i];
    }
  }
  if (rare >= 10) cell(rare, rare_count);
  if (cells < 2) return true;
  const double df = cells - 1, c = 2.0 / (9.0 * df);
  const double limit = df * std::pow(1.0 - c + 3.719 * std::sqrt(c), 3);
  INFO("chi-square " << chi << ", limit " << limit);
  CHECK(chi < limit);
  return chi < limit;
}

constexpr int kDraws = 1 << 17, kRows = 64;

// Which of the fields of a draw varies over the draws.
enum class Vary { kOrdinal, kPosition, kSample };

std::vector<Draw> many_draws(Vary vary, int n = kDraws) {
  std::vector<Draw> draws(n);
  for (int i = 0; i < n; ++i) {
    Draw& d = draws[i];
    d = {i % kRows, 12, 3, 40};
    if (vary == Vary::kOrdinal) d.id.prompt = i;
    if (vary == Vary::kPosition) d.position = i;
    if (vary == Vary::kSample) d.id.sample = i % 65536, d.id.prompt = i / 65536;
  }
  return draws;
}

std::vector<int> count(const std::vector<DrawnToken>& tokens, std::size_t vocab) {
  std::vector<int> counts(vocab, 0);
  for (const auto& t : tokens) ++counts.at(t.id);
  return counts;
}

std::vector<std::vector<float>> random_rows(int rows, int vocab, std::uint64_t seed) {
  const CounterRandom random(seed);
  std::vector<std::vector<float>> logits(rows, std::vector<float>(vocab));
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < vocab; ++i) {
      const RandomKey key{RandomPurpose::kTest,          0, static_cast<std::uint64_t>(r), 0,
                          static_cast<std::uint64_t>(i), 0};
      logits[r][i] = static_cast<float>(3 * random.normal(key));
      if (r % 4 == 1) logits[r][i] = std::round(logits[r][i]);  // ties
      if (r % 4 == 2 && i % 7 == 0) logits[r][i] = kNone;
      if (r % 4 == 3) logits[r][i] *= 20;  // nearly all mass on one id
    }
  return logits;
}

const std::vector<float> kTiny{1.5f, -0.5f, 0.0f, kNone, 2.0f, 1.5f, -6.0f, -12.0f};

}  // namespace

TEST_CASE("draws follow the softmax at the temperature") {
  const Group self = Group::self();
  const int vocab = static_cast<int>(kTiny.size());
  const std::vector<std::vector<float>> rows(kRows, kTiny);
  for (const float temperature : {1.0f, 0.7f, 2.5f}) {
    for (const Vary vary : {Vary::kOrdinal, Vary::kPosition, Vary::kSample}) {
      SamplingOptions o;
      o.temperature = temperature;
      o.seed = 9;
      const auto tokens = draw(rows, vocab, self, many_draws(vary), o);
      INFO("temperature " << temperature << ", varying " << static_cast<int>(vary));
      CHECK(fits(count(tokens, kTiny.size()), softmax(kTiny, vocab, temperature), kDraws));
    }
  }
}

TEST_CASE("neighbouring draws are independent") {
  const Group self = Group::self();
  const std::vector<float> logits{0.0f, 1.0f, 0.5f};
  const std::vector<std::vector<float>> rows(kRows, logits);
  const auto p = softmax(logits, 3, 1);
  for (const Vary vary : {Vary::kOrdinal, Vary::kPosition, Vary::kSample}) {
    const auto tokens = draw(rows, 3, self, many_draws(vary), {});
    std::vector<int> pairs(9, 0);
    for (int i = 0; i < kDraws; i += 2) ++pairs[tokens[i].id * 3 + tokens[i + 1].id];
    std::vector<double> expected(9);
    for (int a = 0; a < 9; ++a) expected[a] = p[a / 3] * p[a % 3];
    INFO("varying " << static_cast<int>(vary));
    CHECK(fits(pairs, expected, kDraws / 2));
  }
}

TEST_CASE("truncated draws follow the softmax of what is left") {
  const Group self = Group::self();
  const int vocab = static_cast<int>(kTiny.size());
  const std::vector<std::vector<float>> rows(kRows, kTiny);
  struct Case {
    int top_k;
    float top_p, min_p;
    std::vector<int> kept;
  };
  // Probabilities at temperature 1: id 4 0.40, 0 and 5 0.24 each, 2 0.054, 1 0.033, then hardly
  // any.
  for (const Case& c : {Case{1, 1, 0, {4}}, Case{2, 1, 0, {4, 0}}, Case{3, 1, 0, {4, 0, 5}},
                        Case{0, 0.5f, 0, {4, 0}}, Case{0, 0.93f, 0, {4, 0, 5, 2}},
                        Case{0, 1, 0.1f, {4, 0, 5, 2}}, Case{4, 0.9f, 0.5f, {4, 0, 5}}}) {
    SamplingOptions o;
    o.top_k = c.top_k;
    o.top_p = c.top_p;
    o.min_p = c.min_p;
    INFO("top_k " << c.top_k << ", top_p " << c.top_p << ", min_p " << c.min_p);
    const auto tokens = draw(rows, vocab, self, many_draws(Vary::kOrdinal), o);
    const auto full = softmax(kTiny, vocab, 1);
    std::vector<double> p(full.size(), 0.0);
    double mass = 0;
    for (const int id : c.kept) mass += full[id];
    for (const int id : c.kept) p[id] = full[id] / mass;
    CHECK(fits(count(tokens, kTiny.size()), p, kDraws));
    for (int i = 0; i < 1000; ++i) {
      REQUIRE(std::abs(tokens[i].kept_mass - mass) < 1e-6);
      REQUIRE(std::abs(tokens[i].log_prob - std::log(full[tokens[i].id])) <
              1e-5);  // of the full softmax all the same
    }
  }
}

TEST_CASE("log-probs are those of the softmax at the temperature, greedy ones at 1") {
  const Group self = Group::self();
  const auto rows = random_rows(8, 331, 1);
  std::vector<Draw> draws;
  for (int r = 0; r < 8; ++r)
    for (int i = 0; i < 20; ++i) draws.push_back({r, i, 0, 5});
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    SamplingOptions o;
    o.temperature = temperature;
    const auto tokens = draw(rows, 320, self, draws, o);
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const double p =
          softmax(rows[draws[i].row], 320, temperature > 0 ? temperature : 1)[tokens[i].id];
      REQUIRE(std::abs(tokens[i].log_prob - std::log(p)) < 2e-5 * (1 + std::abs(std::log(p))));
      REQUIRE(tokens[i].kept_mass == 1.0f);
    }
  }
}

TEST_CASE("greedy takes the lowest of the ids with the largest logit, on whichever shard") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const int vocab = 64 * 8;
  const auto greedy = [&](const std::vector<std::pair<int, float>>& peaks, int valid_ids) {
    std::vector<std::vector<float>> rows(1, std::vector<float>(vocab, -1.0f));
    for (const auto& [id, logit] : peaks) rows[0][id] = logit;
    SamplingOptions o;
    o.temperature = 0.0f;
    return draw(rows, valid_ids, world, {{0, 0, 0, 1}}, o).front().id;
  };
  CHECK(greedy({{300, 2.0f}, {301, 2.0f}, {500, 2.0f}}, vocab) == 300);
  CHECK(greedy({{500, 2.0f}, {70, 2.0f}}, vocab) == 70);
  CHECK(greedy({{0, 2.0f}, {511, 2.0f}}, vocab) == 0);
  CHECK(greedy({}, vocab) == 0);  // all equal
  CHECK(greedy({{511, 2.0f}}, vocab) == 511);
  CHECK(greedy({{511, 9.0f}, {400, 9.0f}, {399, 2.0f}}, 400) ==
        399);  // ids beyond the tokenizer do not count
  CHECK(greedy({{200, 0.0f}, {130, -0.0f}}, vocab) == 130);
}

TEST_CASE("the same tokens and bits for every number of shards") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  for (const int vocab : {64 * 4, 331, 64 * 9 + 1}) {
    const auto rows = random_rows(12, vocab, 2);
    std::vector<Draw> draws;
    for (int r = 0; r < 12; ++r)
      for (int k = 0; k < 1 + 10 * (r % 3); ++k) draws.push_back({r, 100 + r, k, 17});
    for (const float temperature : {0.0f, 0.5f, 1.0f, 3.0f}) {
      for (const auto& [k, p, min_p] : {std::tuple{0, 1.0f, 0.0f},
                                        {7, 1.0f, 0.0f},
                                        {0, 0.8f, 0.0f},
                                        {0, 1.0f, 0.02f},
                                        {40, 0.9f, 0.01f}}) {
        for (const int valid_ids : {vocab, vocab - 3, 65}) {
          SamplingOptions o;
          o.temperature = temperature;
          o.top_k = k;
          o.top_p = p;
          o.min_p = min_p;
          o.seed = 77;
          INFO("vocabulary " << vocab << ", valid " << valid_ids << ", temperature " << temperature
                             << ", top_k " << k);
          const auto one = draw(rows, valid_ids, self, draws, o),
                     many = draw(rows, valid_ids, world, draws, o);
          CHECK(same(one, many));
          for (const auto& t : one)
            REQUIRE((t.id >= 0 && t.id < valid_ids && std::isfinite(t.log_prob)));
        }
      }
    }
  }
}

TEST_CASE("a draw does not depend on the others or on their order") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const auto rows = random_rows(6, 331, 3);
  for (const int top_k : {0, 20}) {
    SamplingOptions o;
    o.top_k = top_k;
    std::vector<Draw> draws;
    for (int i = 0; i < 60; ++i) draws.push_back({i % 6, i / 3, i % 5, 4 * i});
    const auto together = draw(rows, 331, world, draws, o);
    std::vector<Draw> reversed(draws.rbegin(), draws.rend());
    auto back = draw(rows, 331, world, reversed, o);
    std::reverse(back.begin(), back.end());
    CHECK(same(together, back));
    for (std::size_t i = 0; i < draws.size(); i += 7) {
      Draw alone = draws[i];
      alone.row = 0;
      CHECK(same({together[i]}, draw({rows[draws[i].row]}, 331, world, {alone}, o)));
    }
  }
}

TEST_CASE("every field of the key makes other draws") {
  const Group self = Group::self();
  const std::vector<std::vector<float>> rows(1, std::vector<float>(256, 0.0f));
  const auto ids = [&](const SamplingOptions& o, Draw d) {
    std::vector<std::int32_t> list;
    for (int i = 0; i < 16; ++i, ++d.position)
      list.push_back(draw(rows, 256, self, {d}, o).front().id);
    return list;
  };
  SamplingOptions seed, evaluation, iteration;
  seed.seed = 1;
  evaluation.purpose = RandomPurpose::kEvaluation;
  iteration.iteration = 1;
  std::set<std::vector<std::int32_t>> all;
  for (const auto& list : {ids({}, {0, 5, 0, 10}), ids(seed, {0, 5, 0, 10}),
                           ids(evaluation, {0, 5, 0, 10}), ids(iteration, {0, 5, 0, 10}),
                           ids({}, {0, 6, 0, 10}), ids({}, {0, 5, 1, 10}), ids({}, {0, 5, 0, 30})})
    all.insert(list);
  CHECK(all.size() == 7);
  CHECK(ids(seed, {0, 5, 0, 10}) == ids(seed, {0, 5, 0, 10}));
}
