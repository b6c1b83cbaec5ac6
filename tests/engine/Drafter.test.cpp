// SPDX-License-Identifier: Apache-2.0
//
// Guesses of any quality change no bit of a generation, and leave nothing in the cache.
#include "engine/Drafter.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <map>

#include "base/Error.hpp"
#include "engine/EngineRun.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// What a drafter of the test makes of the true continuation of a sequence.
using Spoil = std::function<void(const Sequence& sequence, std::vector<std::int32_t>& draft)>;

// Knows what a plain generation gave.
class Prophet : public Drafter {
 public:
  Prophet(const Generation& truth, int length, Spoil spoil = {})
      : truth_(truth), length_(length), spoil_(std::move(spoil)) {}

  std::vector<std::vector<std::int32_t>> propose(std::span<const DraftAsk> asks,
                                                 const DraftRoom& room) override {
    std::vector<std::vector<std::int32_t>> drafts;
    int rows = room.rows;
    for (const auto& [sequence, most] : asks) {
      const std::vector<std::int32_t>& response = truth_.responses.at(sequence->id).response;
      const int at = sequence->length() - sequence->prompt_length;
      const int end = std::min<int>(at + std::max(most, 0), static_cast<int>(response.size()));
      std::vector<std::int32_t> draft(response.begin() + at, response.begin() + std::max(at, end));
      // Beyond the end of the response too, as far as the limit allows.
      while (static_cast<int>(draft.size()) < most) draft.push_back(static_cast<int>(draft.size()));
      draft.resize(std::min({static_cast<int>(draft.size()), length_, rows}));
      if (spoil_) spoil_(*sequence, draft);
      rows -= static_cast<int>(draft.size());
      drafts.push_back(std::move(draft));
    }
    return drafts;
  }

  void observe(const Sequence& s, int drafted, std::span<const std::int32_t> tokens) override {
    const std::vector<std::int32_t>& response = truth_.responses.at(s.id).response;
    const auto at = response.begin() + (s.length() - s.prompt_length) - std::ssize(tokens);
    told_well_ = told_well_ && std::equal(tokens.begin(), tokens.end(), at) &&
                 std::ssize(tokens) <= drafted + 1;
    drafted_ += drafted;
    accepted_ += std::ssize(tokens) - 1;
  }

  // Whether the engine has told what it reports.
  bool has_been_told(std::int64_t drafted, std::int64_t accepted) const {
    return told_well_ && drafted_ == drafted && accepted_ == accepted;
  }

 private:
  bool told_well_ = true;
  std::int64_t drafted_ = 0, accepted_ = 0;
  const Generation& truth_;
  int length_;
  Spoil spoil_;
};

struct Drafted {
  Generation generation;
  std::int64_t steps = 0, drafted = 0, accepted = 0;
};

// A whole generation with a drafter; after each step the state is that of plain decoding.
Drafted generate_with(GoldenModel& m, const EngineOptions& options, const SamplingOptions& o,
                      const StopOptions& stops, const std::vector<Request>& requests,
                      Prophet& drafter) {
  TestEngine test(m, options);
  test.engine.set_drafter(&drafter);
  test.engine.begin(o, stops);
  for (const Request& r : requests) test.engine.submit(r);
  Drafted all;
  bool plain = true;
  while (!test.engine.idle()) {
    const StepReport report = test.engine.step();
    ++all.steps;
    all.drafted += report.drafted_rows;
    all.accepted += report.accepted;
    CHECK(report.decode_rows + report.prefill_rows + report.drafted_rows <=
          options.scheduler.max_step_rows);
    if (report.prefill_rows > 0) CHECK(report.drafted_rows == 0);
    for (const Sequence& s : test.engine.scheduler().running()) {
      if (s.computed > s.prompt_length) plain = plain && s.pending() >= 1;
      plain = plain && std::ssize(s.blocks) == (s.computed + 63) / 64;
      if (report.drafted_rows > 0) plain = plain && s.pending() == 1;
      plain = plain && std::ssize(s.log_probs) == s.length() - s.prompt_length;
    }
    for (Completion& c : test.engine.take_completions())
      all.generation.responses[c.id] = std::move(c);
  }
  CHECK(plain);
  CHECK(drafter.has_been_told(all.drafted, all.accepted));
  all.generation.preemptions = test.engine.preemptions();
  return all;
}

// Right for a while, then wrong; another while for each place of each sequence.
void right_for_a_while(const Sequence& s, std::vector<std::int32_t>& draft) {
  const std::uint64_t n = CounterRandom(5).below(
      {RandomPurpose::kTest, 0, static_cast<std::uint64_t>(s.id.prompt),
       static_cast<std::uint64_t>(s.id.sample), static_cast<std::uint64_t>(s.length()), 0},
      6);
  for (std::size_t i = n; i < draft.size(); ++i) draft[i] = (draft[i] + 7) % 64;
}

std::map<std::string, Spoil> spoilers(const GoldenModel& m) {
  const std::int32_t last = m.config.vocab - 1;
  return {
      {"right", {}},
      {"wrong",
       [last](const Sequence&, auto& draft) {
         for (auto& id : draft) id = id == last ? 0 : id + 1;
       }},
      {"right for a while", right_for_a_while},
      {"ids at the borders",
       [last](const Sequence& s, auto& draft) {
         for (auto& id : draft) id = s.length() % 2 ? last : 0;
       }},
      {"an end in the middle",
       [](const Sequence&, auto& draft) {
         if (draft.size() > 2) draft[2] = some_stops().ids.front();
       }},
  };
}

}  // namespace

TEST_CASE("guesses change no bit, whatever they are") {
  const Group group = world();
  for (const auto type : {WeightType::kF32, WeightType::kBf16}) {
    GoldenModel m("llama_b", group, type);
    const auto requests = mixed_requests(m, 12, 48);
    for (const float temperature : {0.0f, 0.7f, 1.0f}) {
      const Generation plain = generate(m, roomy(m), sampling(temperature), some_stops(), requests);
      for (const auto& [name, spoil] : spoilers(m)) {
        for (const int length : {1, 3, 8}) {
          if (group.size() > 1 && (length != 3 || temperature == 0.0f))
            continue;  // steps are slower
          INFO(name << ", " << length << " tokens, temperature " << temperature);
          Prophet drafter(plain, length, spoil);
          const Drafted d =
              generate_with(m, roomy(m), sampling(temperature), some_stops(), requests, drafter);
          CHECK(difference(plain, d.generation) == "");
          CHECK(d.drafted > 0);
          if (name == "wrong") CHECK(d.accepted == 0);
          if (name == "right for a while") CHECK(d.accepted > 0);
        }
      }
    }
  }
}

TEST_CASE("right guesses save steps") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  Request request;
  request.prompt = random_prompt(1, 20, m.config.vocab);
  request.max_new_tokens = 61;
  const StopOptions never{{}, {}, {}};
  const Generation plain = generate(m, roomy(m), sampling(1.0f), never, {request});
  REQUIRE(plain.steps == 61);  // the first token comes with the prompt
  Prophet drafter(plain, 4);
  const Drafted d = generate_with(m, roomy(m), sampling(1.0f), never, {request}, drafter);
  CHECK(difference(plain, d.generation) == "");
  CHECK(d.steps == 1 + 60 / 5);
  CHECK(d.accepted == 4 * 60 / 5);
  CHECK(d.drafted == d.accepted);
}

TEST_CASE("guesses and truncation, penalty, prescribed lengths and few rows") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  auto requests = mixed_requests(m, 10, 40);
  SamplingOptions truncated = sampling(1.3f), penalized = sampling(0.8f);
  truncated.top_k = 50;
  truncated.top_p = 0.9f;
  truncated.min_p = 0.01f;
  penalized.repetition_penalty = 1.4f;
  EngineOptions few = roomy(m);
  few.scheduler.max_running = 8;
  few.scheduler.max_step_rows = 11;
  few.logit_rows = 3;
  for (const bool pinned : {false, true}) {
    if (pinned)
      for (Request& r : requests)
        for (int k = 0; k < r.samples; ++k) r.pinned.push_back(1 + (7 * k + 3) % r.max_new_tokens);
    for (const SamplingOptions& o : {truncated, penalized}) {
      const Generation plain = generate(m, roomy(m), o, some_stops(), requests);
      for (const EngineOptions& options : {roomy(m), few}) {
        Prophet drafter(plain, 5, right_for_a_while);
        const Drafted d = generate_with(m, options, o, some_stops(), requests, drafter);
        CHECK(difference(plain, d.generation) == "");
        CHECK(d.accepted > 0);
      }
    }
  }
}

TEST_CASE("guesses take free blocks alone") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  const auto requests = mixed_requests(m, 16, 90);
  const StopOptions stops{{2}, {}, {}};
  const Generation plain = generate(m, roomy(m), sampling(0.7f), stops, requests);
  EngineOptions small = roomy(m);
  small.kv_blocks = 12;
  const Generation pressed = generate(m, small, sampling(0.7f), stops, requests);
  REQUIRE((pressed.preemptions > 0) == (group.rank() == 0));  // the leader counts
  for (const auto& [name, spoil] : spoilers(m)) {
    INFO(name);
    Prophet drafter(plain, 8, spoil);
    const Drafted d = generate_with(m, small, sampling(0.7f), stops, requests, drafter);
    CHECK(difference(plain, d.generation) == "");
    // Where no guess is ever right, sequences take the same turns.
    if (name == "wrong") CHECK(d.generation.preemptions == pressed.preemptions);
  }
}

TEST_CASE("an engine without a drafter drafts nothing, and can do without again") {
  const Group group = world();
  GoldenModel m("llama_b", group);
  const auto requests = mixed_requests(m, 6, 30);
  const Generation plain = generate(m, roomy(m), sampling(1.0f), some_stops(), requests);
  TestEngine test(m, roomy(m));
  Prophet drafter(plain, 4);
  std::int64_t drafted = 0;
  for (Drafter* with : {static_cast<Drafter*>(nullptr), static_cast<Drafter*>(&drafter),
                        static_cast<Drafter*>(nullptr)}) {
    test.engine.set_drafter(with);
    test.engine.begin(sampling(1.0f), some_stops());
    for (const Request& r : requests) test.engine.submit(r);
    std::int64_t now = 0;
    Generation g;
    while (!test.engine.idle()) {
      now += test.engine.step().drafted_rows;
      for (Completion& c : test.engine.take_completions()) g.responses[c.id] = std::move(c);
    }
    CHECK(difference(plain, g) == "");
    CHECK((now > 0) == (with != nullptr));
    drafted += now;
  }
  CHECK(drafted > 0);
}
