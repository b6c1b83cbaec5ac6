// SPDX-License-Identifier: Apache-2.0
#include "workers/WorkerPool.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <map>
#include <thread>

#include "base/Error.hpp"
#include "base/TextFile.hpp"
#include "base/Timer.hpp"
#include "reward/Protocol.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

struct Fixture {
  test::Scratch scratch;
  Spawner spawner;
  CommandOptions options;

  explicit Fixture(const std::string& kind) {
    options.command = {TAPER_GOLDEN_DIR "/../reward/worker.sh", kind, (scratch / "mark").string()};
    options.timeout = 20;  // only faults come near it
    options.start_timeout = 20;
    options.retries = 0;
  }

  static WorkerQuestion question(const std::string& response, std::int64_t prompt = 0) {
    JudgedResponse r;
    r.id = {prompt, 7};
    r.response = response;
    return {r.id, request_members("judge", r)};
  }

  // Of the kind "gate": once a worker is asked about a prompt, what all have been asked so far.
  std::string asked_until(std::int64_t prompt) const {
    const Timer timer;
    for (;;) {
      const std::string asked = test::slurp((scratch / "mark").string() + ".asked");
      if (asked.find("\"index\":" + std::to_string(prompt) + ",") != std::string::npos)
        return asked;
      REQUIRE(timer.seconds() < 120);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void open_gate() const { test::spill(scratch / "mark", ""); }

  // The prompts of the results, once there are all.
  static std::vector<std::int64_t> finished_prompts(WorkerPool& pool) {
    const Timer timer;
    while (!pool.wait(0.2)) REQUIRE(timer.seconds() < 120);
    std::vector<std::int64_t> prompts;
    for (const WorkerResult& result : pool.take()) prompts.push_back(result.about.prompt);
    return prompts;
  }

  // What became of responses with these texts, in their order.
  std::vector<WorkerResult> judge(WorkerPool& pool,
                                  const std::vector<std::string>& responses) const {
    for (std::size_t i = 0; i < responses.size(); ++i)
      pool.submit(question(responses[i], static_cast<std::int64_t>(i)));
    const Timer timer;
    while (!pool.wait(0.2)) REQUIRE(timer.seconds() < 120);
    std::map<ResponseId, WorkerResult> sorted;
    for (auto& result : pool.take()) sorted[result.about] = result;
    std::vector<WorkerResult> list;
    for (auto& [about, result] : sorted) list.push_back(result);
    REQUIRE(list.size() == responses.size());
    return list;
  }

  WorkerPool pool() {
    return {
        {"Rewards/judge", {"TAPER_REWARD=judge", "TAPER_RANK=0"}, (scratch / "worker").string()},
        options,
        answer_reader(options.components),
        spawner};
  }
};

}  // namespace

TEST_CASE("good workers judge everything, several at a time") {
  Fixture f("good");
  f.options.workers = 3;
  f.options.components = {"style"};
  WorkerPool pool = f.pool();
  pool.start();
  for (int round = 0; round < 2; ++round) {
    const auto list =
        f.judge(pool, {"x", "bad", std::string(300000, 'y'), "x", "x", "x", "x", "x", "x"});
    for (std::size_t i = 0; i < list.size(); ++i) {
      CHECK(list[i].is_answered);
      CHECK(list[i].about == ResponseId{static_cast<std::int64_t>(i), 7});
      CHECK(list[i].figures == std::vector<double>{i == 1 ? 0.75 : 0.5, 0.25});
      CHECK(list[i].seconds > 0);
    }
  }
  CHECK(pool.take_counts().restarts == 0);
  CHECK(pool.take().empty());
}

TEST_CASE("each fault of a worker costs its response alone, is counted and named") {
  struct Fault {
    const char* kind;
    const char* word;
    int errors, timeouts, restarts;
  };
  const auto fault = GENERATE(
      Fault{"hangs", "did not answer within", 0, 1, 1}, Fault{"dies", "ended by signal 9", 1, 0, 1},
      Fault{"half", "within a line (it exited with code 1)", 1, 0, 1},
      Fault{"mute", "closed its output", 1, 0, 1}, Fault{"rubbish", "Traceback", 1, 0, 1},
      Fault{"wrong_id", "to the request of id", 1, 0, 1},
      Fault{"huge", "a line of more than 1.00 MiB", 1, 0, 1},
      Fault{"reports", "no such judge", 1, 0, 0}, Fault{"nan", "neither a finite", 1, 0, 0});
  CAPTURE(fault.kind);
  Fixture f(fault.kind);
  f.options.workers = 1;
  if (fault.timeouts > 0) f.options.timeout = 1.0;  // of a worker that has answered before
  WorkerPool pool = f.pool();
  const auto list = f.judge(pool, {"x", "bad", "x"});
  CHECK(list[0].is_answered);
  CHECK(!list[1].is_answered);
  CHECK_THAT(list[1].problem, ContainsSubstring(fault.word));
  CHECK(list[2].is_answered);
  const PoolCounts counts = pool.take_counts();
  CHECK(counts.errors == fault.errors);
  CHECK(counts.timeouts == fault.timeouts);
  CHECK(counts.restarts == fault.restarts);
}

TEST_CASE("an answer too many does not become the next one's") {
  Fixture f("twice");
  f.options.workers = 1;
  f.options.retries = 1;  // of a response that was asked about before the second line came
  WorkerPool pool = f.pool();
  const auto list = f.judge(pool, {"bad", "x", "bad", "x"});
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(list[i].is_answered);
    CHECK(list[i].figures == std::vector<double>{0.5});
  }
  CHECK(pool.take_counts().restarts >= 2);
}

TEST_CASE("a response has another attempt where one failed") {
  Fixture f("once");
  f.options.retries = 1;
  WorkerPool pool = f.pool();
  const auto list = f.judge(pool, {"bad"});
  CHECK(list[0].is_answered);
  CHECK(pool.take_counts().errors == 1);
}

TEST_CASE("workers that end at once fail all responses, and say why") {
  const auto [kind, code] =
      GENERATE(std::pair{"exits", "exited with code 0"}, std::pair{"fails", "exited with code 3"});
  Fixture f(kind);
  f.options.retries = 2;
  WorkerPool pool = f.pool();
  pool.start();
  const auto list = f.judge(pool, {"x", "x", "x"});
  for (const auto& j : list) {
    CHECK(!j.is_answered);
    CHECK_THAT(j.problem, ContainsSubstring(code) && ContainsSubstring("worker"));
  }
  CHECK(pool.take_counts().errors == 9);
  if (std::string(kind) == "fails")
    CHECK_THAT(read_text_file((f.scratch / "worker0.log").string()),
               ContainsSubstring("no weights here"));
}

TEST_CASE("what a worker says before it is asked ends it") {
  Fixture f("chatty");
  f.options.workers = 1;
  WorkerPool pool = f.pool();
  const auto list = f.judge(pool, {"x"});
  CHECK(!list[0].is_answered);
  CHECK_THAT(list[0].problem, ContainsSubstring("'loading'") || ContainsSubstring("output"));
}

TEST_CASE("a worker may take longer for its first answer") {
  Fixture f("slow_start");
  f.options.timeout = 0.2;
  WorkerPool pool = f.pool();
  CHECK(f.judge(pool, {"x"})[0].is_answered);
}

TEST_CASE("workers work side by side") {
  Fixture f("meets");  // each waits for the others
  f.options.workers = 4;
  WorkerPool pool = f.pool();
  for (const WorkerResult& r : f.judge(pool, std::vector<std::string>(4, "x")))
    CHECK(r.figures == std::vector<double>{1});
}

TEST_CASE("a pool that is given up leaves at once") {
  Fixture f("hangs");
  const Timer timer;
  {
    WorkerPool pool = f.pool();
    pool.submit(Fixture::question("bad"));
    CHECK(!pool.wait(0.05));
  }
  CHECK(timer.seconds() < f.options.timeout);
}

TEST_CASE("a program that is not there is bad input, at the start and later") {
  Fixture f("good");
  f.options.command = {"/no/such/program"};
  WorkerPool pool = f.pool();
  CHECK_THROWS_MATCHES(pool.start(), Error, MessageMatches(ContainsSubstring("/no/such/program")));
  pool.submit(Fixture::question("x"));
  CHECK_THROWS_MATCHES(
      [&] {
        while (!pool.wait(1.0)) continue;
      }(),
      Error, MessageMatches(ContainsSubstring("/no/such/program")));
}

TEST_CASE("a cancelled question in the queue reaches no worker") {
  Fixture f("gate");
  f.options.workers = 1;
  WorkerPool pool = f.pool();
  pool.submit(Fixture::question("bad", 0));
  for (const std::int64_t prompt : {1, 2, 3}) pool.submit(Fixture::question("x", prompt));
  f.asked_until(0);
  pool.cancel({1, 7});
  pool.cancel({2, 8});  // nobody has asked that
  f.open_gate();
  CHECK(Fixture::finished_prompts(pool) == std::vector<std::int64_t>{0, 2, 3});
  CHECK(f.asked_until(3).find("\"index\":1,") == std::string::npos);
}

TEST_CASE("a cancelled question of a busy worker has no result, and the worker goes on") {
  Fixture f("gate");
  f.options.workers = 1;
  WorkerPool pool = f.pool();
  pool.submit(Fixture::question("bad", 0));
  f.asked_until(0);
  pool.cancel({0, 7});
  CHECK(pool.wait(0.0));  // for nothing
  pool.submit(Fixture::question("x", 1));
  pool.submit(Fixture::question("x", 0));  // the same response again is another question
  CHECK(!pool.wait(0.0));
  f.open_gate();
  CHECK(Fixture::finished_prompts(pool) == std::vector<std::int64_t>{1, 0});
  const PoolCounts counts = pool.take_counts();
  CHECK((counts.errors == 0 && counts.timeouts == 0 && counts.restarts == 0));
}

TEST_CASE("a cancelled question fails without a trace, and results not taken yet go") {
  Fixture f("gate");
  f.options.workers = 1;
  f.options.timeout = 1.0;  // of a worker that has answered before
  f.options.retries = 2;
  WorkerPool pool = f.pool();
  f.judge(pool, {"x"});
  pool.submit(Fixture::question("bad", 1));
  f.asked_until(1);
  pool.cancel({1, 7});
  pool.submit(Fixture::question("x", 2));
  pool.submit(Fixture::question("x", 3));
  const Timer timer;
  while (!pool.wait(0.2)) REQUIRE(timer.seconds() < 120);
  pool.cancel({2, 7});
  CHECK(Fixture::finished_prompts(pool) == std::vector<std::int64_t>{3});
  const PoolCounts counts = pool.take_counts();
  CHECK((counts.errors == 0 && counts.timeouts == 0 && counts.restarts == 1));
}

TEST_CASE("a question with a shorter time of its own is cut, once, and counted as such") {
  const bool is_cut = GENERATE(true, false);
  Fixture f("hangs");
  f.options.workers = 1;
  f.options.timeout = is_cut ? 20.0 : 1.0;
  f.options.retries = is_cut ? 2 : 0;
  WorkerPool pool = f.pool();
  f.judge(pool, {"x"});  // the next answer is not the first
  WorkerQuestion question = Fixture::question("bad");
  question.timeout = is_cut ? 1.0 : 20.0;
  pool.submit(std::move(question));
  const Timer timer;
  while (!pool.wait(0.2)) REQUIRE(timer.seconds() < 120);
  const WorkerResult result = pool.take().front();
  CHECK(!result.is_answered);
  CHECK_THAT(result.problem, ContainsSubstring("did not answer within"));
  CHECK((result.problem.find("limit for its prompt") != std::string::npos) == is_cut);
  const PoolCounts counts = pool.take_counts();
  CHECK(counts.timeouts == 1);
  CHECK(counts.cut_short == (is_cut ? 1 : 0));
}

TEST_CASE("the first answer of a worker is known as such") {
  Fixture f("good");
  f.options.workers = 1;
  WorkerPool pool = f.pool();
  pool.start();
  const auto list = f.judge(pool, {"x", "x"});
  CHECK(list[0].with_start);
  CHECK(!list[1].with_start);
}
