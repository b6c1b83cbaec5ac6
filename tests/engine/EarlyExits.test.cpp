// SPDX-License-Identifier: Apache-2.0
//
// Steps that begin with early exits end as they would without, bit for bit.
#include "engine/EarlyExits.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "engine/EngineRun.hpp"
#include "engine/TestExits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// Drafts what exits say, but for some tokens that it knows better, so that drafts are right for a
// while, and some tokens that are never asked about.
class Asker : public Drafter {
 public:
  Asker(const Generation& truth, int length, const SamplingOptions& sampling)
      : truth_(truth), length_(length), sampling_(sampling) {}

  void set_model(GuessModel& model) { model_ = &model; }

  std::vector<std::vector<std::int32_t>> propose(std::span<const DraftAsk> asks,
                                                 const DraftRoom& room) override {
    std::vector<std::vector<std::int32_t>> drafts(asks.size());
    int rows = room.rows;
    std::vector<std::size_t> growing;
    if (chance(*asks.front().sequence, 99, 2) > 0) model_->keep(asks);
    for (std::size_t i = 0; i < asks.size(); ++i)
      if (asks[i].most > 0 && chance(*asks[i].sequence, 0, 8) > 0) growing.push_back(i);
    for (int round = 1; !growing.empty(); ++round) {
      std::vector<DraftContext> contexts;
      for (const std::size_t i : growing) contexts.push_back({asks[i].sequence, drafts[i]});
      const std::vector<DrawnToken> drawn = model_->draw(contexts, sampling_);
      std::vector<std::size_t> grown;
      for (std::size_t k = 0; k < growing.size(); ++k) {
        const std::size_t i = growing[k];
        const Sequence& s = *asks[i].sequence;
        if (drawn[k].id < 0) continue;
        asked_ += 1;
        const auto& response = truth_.responses.at(s.id).response;
        const auto at = static_cast<std::size_t>(s.length() - s.prompt_length) + drafts[i].size();
        const bool knows = at < response.size() && chance(s, round, 4) > 0;
        // The last one may be left out: then its position has been computed for nothing.
        if (rows == 0 || chance(s, round + 100, 5) == 0) continue;
        drafts[i].push_back(knows ? response[at] : drawn[k].id);
        --rows;
        if (std::ssize(drafts[i]) < std::min(asks[i].most, length_)) grown.push_back(i);
      }
      growing = std::move(grown);
    }
    return drafts;
  }
  void observe(const Sequence&, int drafted, std::span<const std::int32_t> tokens) override {
    drafted_ += drafted;
    accepted_ += std::ssize(tokens) - 1;
  }

  std::int64_t asked_ = 0, drafted_ = 0, accepted_ = 0;

 private:
  static std::uint64_t chance(const Sequence& s, int round, std::uint64_t below) {
    return CounterRandom(9).below(
        {RandomPurpose::kTest, static_cast<std::uint64_t>(round),
         static_cast<std::uint64_t>(s.id.prompt), static_cast<std::uint64_t>(s.id.sample),
         static_cast<std::uint64_t>(s.length()), 0},
        below);
  }

  const Generation& truth_;
  int length_;
  SamplingOptions sampling_;
  GuessModel* model_ = nullptr;
};

struct Drafting {
  Generation generation;
  std::int64_t asked, drafted, accepted;
};

Drafting generate_with(GoldenModel& m, const EngineOptions& options, const SamplingOptions& o,
                       const std::vector<Request>& requests, TestExits& exits, Asker asker) {
  TestEngine test(m, options);
  asker.set_model(exits.set(test.engine, options));
  test.engine.set_drafter(&asker);
  test.engine.begin(o, some_stops());
  for (const Request& r : requests) test.engine.submit(r);
  Generation g = drain(test.engine);
  return {std::move(g), asker.asked_, asker.drafted_, asker.accepted_};
}

}  // namespace

TEST_CASE("early exits change no bit") {
  const Group group = world();
  for (const auto type : {WeightType::kF32, WeightType::kBf16}) {
    GoldenModel m("llama_b", group, type);
    REQUIRE(m.config.layers >= 2);
    const auto requests = mixed_requests(m, 12, 40);
    EngineOptions few = roomy(m);
    few.scheduler.max_running = 8;
    few.scheduler.max_step_rows = 11;
    few.logit_rows = 3;
    for (const float temperature : {0.0f, 0.7f}) {
      const Generation plain = generate(m, roomy(m), sampling(temperature), some_stops(), requests);
      for (const EngineOptions& options : {roomy(m), few}) {
        TestExits exits(m, {1});
        const Drafting d = generate_with(m, options, sampling(temperature), requests, exits,
                                         {plain, 5, sampling(temperature)});
        CHECK(difference(plain, d.generation) == "");
        CHECK(d.accepted > 0);
        CHECK(d.accepted < d.drafted);
        CHECK(d.drafted < d.asked);
      }
    }
  }
}

TEST_CASE("an exit says what its head says of the stream behind its layers") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  TestExits exits(m, {1});
  const int h = m.config.hidden;
  Request request;
  request.prompt = random_prompt(3, 20, m.config.vocab);
  request.max_new_tokens = 8;
  TestEngine test(m, roomy(m));
  GuessModel& model = exits.set(test.engine, roomy(m));
  test.engine.begin(sampling(0.0f), {});
  test.engine.submit(request);
  test.engine.step();  // reads the prompt
  const Sequence& s = test.engine.scheduler().running().front();
  const std::vector<std::int32_t> draft{5, 9};
  const std::vector<DraftContext> contexts{{&s, draft}};
  const std::vector<DrawnToken> drawn = model.draw(contexts, sampling(0.0f));
  REQUIRE(drawn.size() == 1);
  CHECK(model.rows_read() == 3);

  PackedSequences all;
  all.ids = s.tokens;
  all.ids.insert(all.ids.end(), draft.begin(), draft.end());
  all.lengths = {static_cast<int>(all.ids.size())};
  m.pass->forward(m.exec, *m.view, m.parallel, all);
  std::vector<float> x(static_cast<std::size_t>(h));
  m.pass->copy_stream(m.exec, 1,
                      std::vector<std::int32_t>{static_cast<std::int32_t>(all.ids.size()) - 1},
                      FloatMatrix(x.data(), 1, x.size()));
  double square = 0;
  for (int c = 0; c < h; ++c) square += static_cast<double>(x[c]) * x[c];
  const double inv = 1 / std::sqrt(square / h + m.config.norm_eps);
  std::vector<double> logits;
  for (int row = 0; row < TestExits::kVocab; ++row) {
    double sum = 0;
    for (int c = 0; c < h; ++c) sum += inv * x[c] * exits.models.front().row(row)[c];
    logits.push_back(sum);
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  CHECK(drawn[0].id == exits.ids[static_cast<std::size_t>(best - logits.begin())]);
  double mass = 0;
  for (const double l : logits) mass += std::exp(l - *best);
  CHECK(std::abs(drawn[0].log_prob + std::log(mass)) < 1e-3);
}
