// SPDX-License-Identifier: Apache-2.0
//
// What drafters rely on, with early exits as the model.
#include "engine/GuessModel.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "engine/TestExits.hpp"

using namespace taper;
using namespace taper::test;

namespace {

// An engine that has read three prompts, and exits of its model.
struct Fixture {
  Fixture() : m("llama_b", group), exits(m, {1}), test(m, roomy(m)) {
    model = &exits.set(test.engine, roomy(m));
    test.engine.begin(sampling(0.7f), {});
    for (int i = 0; i < 3; ++i) {
      Request request;
      request.first.prompt = i;
      request.prompt = random_prompt(i, 9 + i, m.config.vocab);
      request.max_new_tokens = 30;
      test.engine.submit(request);
    }
    test.engine.step();
    for (const Sequence& s : test.engine.scheduler().running()) asks.push_back({&s, 8});
  }
  std::vector<std::int32_t> draw(const std::vector<DraftContext>& contexts) {
    std::vector<std::int32_t> ids;
    for (const DrawnToken& token : model->draw(contexts, sampling(0.7f))) ids.push_back(token.id);
    return ids;
  }

  Group group = world();
  GoldenModel m;
  TestExits exits;
  TestEngine test;
  GuessModel* model;
  std::vector<DraftAsk> asks;
};

}  // namespace

TEST_CASE("a model draws the same token in any company") {
  Fixture f;
  REQUIRE(f.asks.size() == 3);
  const std::vector<std::int32_t> draft{7, 3};
  const std::vector<DraftContext> contexts{
      {f.asks[0].sequence, draft}, {f.asks[1].sequence, {}}, {f.asks[2].sequence, draft}};
  const std::vector<std::int32_t> together = f.draw(contexts);
  CHECK(std::all_of(together.begin(), together.end(), [](std::int32_t id) { return id >= 0; }));
  Fixture other;
  for (const std::size_t i : {2, 0, 1}) {
    const DraftContext alone{other.asks[i].sequence, contexts[i].draft};
    CHECK(other.draw({alone}) == std::vector<std::int32_t>{together[i]});
  }
}

TEST_CASE("what is read once is not read again") {
  Fixture f;
  f.model->keep(f.asks);
  (void)f.draw({{f.asks[0].sequence, {}}});
  CHECK(f.model->rows_read() == 1);
  // The other sequences of the step have come to the exit with the first one.
  (void)f.draw({{f.asks[1].sequence, {}}, {f.asks[2].sequence, {}}});
  CHECK(f.model->rows_read() == 0);
  const std::vector<std::int32_t> draft{11, 4}, longer{11, 4, 5}, different{11, 6};
  (void)f.draw({{f.asks[0].sequence, draft}});
  CHECK(f.model->rows_read() == 2);
  (void)f.draw({{f.asks[0].sequence, longer}});
  CHECK(f.model->rows_read() == 1);
  (void)f.draw({{f.asks[0].sequence, different}});
  CHECK(f.model->rows_read() == 1);
}
