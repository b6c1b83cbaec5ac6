// SPDX-License-Identifier: Apache-2.0
#include "engine/Scheduler.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <vector>

#include "base/Error.hpp"
#include "base/Random.hpp"

using namespace taper;

namespace {

Sequence prompt(int ordinal, int length, int max_new_tokens, int samples = 1) {
  Sequence s;
  s.id.prompt = ordinal;
  s.samples = samples;
  s.prompt_length = length;
  s.max_new_tokens = max_new_tokens;
  for (int i = 0; i < length; ++i) s.tokens.push_back(1000 * ordinal + i);
  return s;
}

// Drives a scheduler as the engine does, with a memory that stores which token was written where
// instead of keys and values: whatever is shared, copied or recomputed, each sequence must find its
// own tokens in its blocks.
struct Driver {
  Driver(const SchedulerOptions& o, int blocks) : options(o), scheduler(o, blocks), memory(blocks) {
    for (auto& block : memory) block.assign(o.block_size, -1);
  }

  std::int32_t& cell(const Sequence& s, int position) {
    return memory[s.blocks[position / options.block_size]][position % options.block_size];
  }

  void check_step(const std::vector<Work>& work) {
    int rows = 0;
    std::set<const Sequence*> seen;
    for (const Work& w : work) {
      REQUIRE(w.count > 0);
      REQUIRE(seen.insert(w.sequence).second);
      rows += w.count;
      const Sequence& s = *w.sequence;
      const int end = s.computed + w.count;
      REQUIRE(end <= s.length());
      REQUIRE(static_cast<int>(s.blocks.size()) ==
              (end + options.block_size - 1) / options.block_size);
      for (int p = 0; p < s.computed; ++p) REQUIRE(cell(s, p) == s.tokens[p]);
      for (int p = s.computed; p < end; ++p)
        REQUIRE(scheduler.blocks().users(s.blocks[p / options.block_size]) == 1);
    }
    REQUIRE(rows <= options.max_step_rows);
    int taken = 0;
    for (const Sequence& s : scheduler.running()) {
      taken += s.samples;
      REQUIRE(seen.count(&s) == 1);  // everybody who runs gets on
    }
    REQUIRE(taken <= options.max_running);
    check_blocks();
  }

  // Every block is free or has the users that list it.
  void check_blocks() {
    std::map<std::int32_t, int> users;
    for (const Sequence& s : scheduler.running())
      for (const auto b : s.blocks) ++users[b];
    for (const Sequence& s : scheduler.waiting()) REQUIRE((s.blocks.empty() && s.computed == 0));
    int used = 0;
    for (int b = 0; b < scheduler.blocks().total(); ++b) {
      REQUIRE(scheduler.blocks().users(b) == users[b]);
      used += users[b] > 0;
    }
    REQUIRE(scheduler.blocks().free() == scheduler.blocks().total() - used);
  }

  // A token that depends on the sequence and its position only.
  static std::int32_t next_token(const Sequence& s) {
    return static_cast<std::int32_t>(1000000 + 10000 * (s.id.prompt % 100) +
                                     1000 * (s.id.sample % 10) + s.length() - s.prompt_length);
  }
  static bool over(const Sequence& s) { return s.length() - s.prompt_length >= s.max_new_tokens; }

  void finish(const Sequence& s) { done.push_back(s.id); }

  void step() {
    const auto work = scheduler.next_step();
    REQUIRE(!work.empty());
    check_step(work);
    ++steps;
    std::vector<Sequence*> ready;
    for (const Work& w : work) {
      Sequence& s = *w.sequence;
      for (int p = s.computed; p < s.computed + w.count; ++p) cell(s, p) = s.tokens[p];
      const bool last = w.finishes();
      s.computed += w.count;
      computed += w.count;
      if (last) ready.push_back(&s);
    }
    for (Sequence* s : ready) s->is_shared_prompt() ? fork_samples(*s) : append(*s);
    check_blocks();
  }

  void append(Sequence& s) {
    s.tokens.push_back(next_token(s));
    if (!over(s)) return;
    finish(s);
    scheduler.finish(&s);
  }

  void fork_samples(Sequence& parent) {
    for (int k = 0; k < parent.samples; ++k) {
      Sequence child = parent.fork(k);
      child.tokens.push_back(next_token(child));
      if (over(child)) {
        finish(child);
        continue;
      }
      const auto to = scheduler.fork(parent, std::move(child));
      if (to >= 0) memory[to] = memory[parent.blocks.back()];
    }
    scheduler.finish(&parent);
  }

  void run(std::int64_t step_limit) {
    while (!scheduler.idle()) {
      step();
      REQUIRE(steps <= step_limit);
    }
    CHECK(scheduler.blocks().free() == scheduler.blocks().total());
    CHECK(scheduler.next_step().empty());
  }

  SchedulerOptions options;
  Scheduler scheduler;
  std::vector<std::vector<std::int32_t>> memory;
  std::vector<ResponseId> done;
  std::int64_t steps = 0, computed = 0;
};

}  // namespace

TEST_CASE("options under which a running sequence may get no row are refused") {
  CHECK_THROWS_AS(Scheduler({8, 7, 64}, 4), Error);
  CHECK_THROWS_AS(Scheduler({0, 7, 64}, 4), Error);
  CHECK_NOTHROW(Scheduler({8, 8, 64}, 4));
}

TEST_CASE("a sequence that can never fit is refused, one that just fits is not") {
  Scheduler s({4, 16, 8}, 3);
  CHECK_NOTHROW(s.submit(prompt(0, 4, 20)));
  try {
    s.submit(prompt(1, 5, 20));
    FAIL("accepted");
  } catch (const Error& e) {
    CHECK(e.code() == ExitCode::kBadInput);
    CHECK(std::string(e.what()).find("5 + 20 tokens needs 4 KV blocks (the cache has 3)") !=
          std::string::npos);
  }
  CHECK(s.waiting().size() == 1);
}

TEST_CASE("sequences are admitted in order of submission while slots last") {
  Driver d({2, 16, 8}, 100);
  for (int i = 0; i < 5; ++i) d.scheduler.submit(prompt(i, 3, 2));
  const auto first = d.scheduler.next_step();
  REQUIRE(first.size() == 2);
  CHECK(first[0].sequence->id.prompt == 0);
  CHECK(first[1].sequence->id.prompt == 1);
  CHECK(d.scheduler.waiting().size() == 3);
  d.run(100);
  CHECK(d.done == std::vector<ResponseId>{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}});
}

TEST_CASE("a later short prompt does not overtake one that has no blocks yet") {
  Driver d({4, 64, 8}, 4);
  d.scheduler.submit(prompt(0, 20, 4));  // 3 blocks
  d.scheduler.submit(prompt(1, 20, 4));
  d.scheduler.submit(prompt(2, 1, 1));
  const auto work = d.scheduler.next_step();
  REQUIRE(work.size() == 1);
  CHECK(work[0].sequence->id.prompt == 0);
  d.run(100);
  CHECK(d.done.size() == 3);
}

TEST_CASE("a long prompt is read in chunks beside running sequences") {
  Driver d({4, 10, 8}, 100);
  d.scheduler.submit(prompt(0, 2, 30));
  d.step();
  d.scheduler.submit(prompt(1, 25, 3));
  std::vector<int> chunks;
  for (int i = 0; i < 4; ++i) {
    const auto work = d.scheduler.next_step();
    REQUIRE(work.size() == 2);
    CHECK(work[0].sequence->id.prompt == 0);  // decodes go on meanwhile
    CHECK(work[0].count == 1);
    chunks.push_back(work[1].count);
    d.step();  // plans the same step again: nothing has changed since
  }
  CHECK(chunks == std::vector<int>{9, 9, 7, 1});
}

TEST_CASE("an old prompt in chunks leaves a row to each younger sequence") {
  Driver d({4, 10, 8}, 100);
  d.scheduler.submit(prompt(0, 100, 2));
  d.scheduler.submit(prompt(1, 1, 20));
  const auto work = d.scheduler.next_step();
  REQUIRE(work.size() == 2);
  CHECK(work[0].count == 9);
  CHECK(work[1].count == 1);
  d.run(100);
}

TEST_CASE("samples share the full blocks of their prompt and copy the last one") {
  Driver d({8, 64, 8}, 100);
  d.scheduler.submit(prompt(0, 20, 5, 3));  // 2 full blocks and 4 positions
  d.step();
  REQUIRE(d.scheduler.running().size() == 3);
  std::set<std::int32_t> last;
  for (const Sequence& s : d.scheduler.running()) {
    REQUIRE(s.blocks.size() == 3);
    CHECK(d.scheduler.blocks().users(s.blocks[0]) == 3);
    CHECK(d.scheduler.blocks().users(s.blocks[1]) == 3);
    CHECK(d.scheduler.blocks().users(s.blocks[2]) == 1);
    last.insert(s.blocks[2]);
  }
  CHECK(last.size() == 3);
  CHECK(d.computed == 20);  // read once
  d.run(100);
  CHECK(d.computed == 20 + 3 * 4);
  CHECK(d.done.size() == 3);
}

TEST_CASE("a prompt of whole blocks is shared without a copy") {
  Driver d({8, 64, 8}, 4);
  d.scheduler.submit(prompt(0, 16, 2, 2));
  d.step();
  CHECK(d.scheduler.blocks().free() == 2);
  d.run(100);
  CHECK(d.scheduler.preemptions() == 0);
}

TEST_CASE("a sample that finds no block for its copy is recomputed later") {
  Driver d({8, 64, 8}, 2);
  d.scheduler.submit(prompt(0, 10, 6, 4));  // needs both blocks for itself alone
  d.run(200);
  CHECK(d.done.size() == 4);
  CHECK(d.computed > 10 + 4 * 5);
}

TEST_CASE("blocks are taken from the youngest, who starts again first") {
  Driver d({4, 64, 4}, 6);
  for (int i = 0; i < 3; ++i) d.scheduler.submit(prompt(i, 3, 14));
  d.step();
  REQUIRE(d.scheduler.running().size() == 3);
  while (d.scheduler.preemptions() == 0) d.step();
  CHECK(d.scheduler.running().front().id.prompt == 0);
  REQUIRE(!d.scheduler.waiting().empty());
  CHECK(d.scheduler.waiting().front().id.prompt == 2);
  d.run(200);
  CHECK(d.done.front() == ResponseId{0, 0});
  CHECK(d.done.size() == 3);
}

TEST_CASE("any workload ends with few blocks, in bounded steps, and leaves none behind") {
  std::int64_t preemptions = 0, waited = 0;
  for (int round = 0; round < 400; ++round) {
    INFO("round " << round);
    RandomStream random(5, RandomPurpose::kTest, 0, static_cast<std::uint64_t>(round));
    SchedulerOptions o;
    o.block_size = static_cast<int>(random.between(1, 9));
    o.max_running = static_cast<int>(random.between(1, 10));
    o.max_step_rows = o.max_running + static_cast<int>(random.between(0, 12));
    const int longest = static_cast<int>(random.between(2, 40));
    const int least = (longest + o.block_size - 1) / o.block_size;  // one sequence just fits
    Driver d(o, least + static_cast<int>(random.below(4) == 0 ? random.between(0, 40)
                                                              : random.between(0, 3)));
    const int prompts = static_cast<int>(random.between(1, 12));
    std::size_t expected = 0;
    std::int64_t limit = 1;
    int submitted = 0;
    const auto submit = [&] {
      const int length = static_cast<int>(random.between(1, longest - 1));
      const int fresh = static_cast<int>(random.between(1, longest - length));
      const int samples = static_cast<int>(random.between(1, o.max_running));
      d.scheduler.submit(prompt(submitted++, length, fresh, samples));
      expected += samples;
      limit +=
          length + std::int64_t{samples} * (length + fresh);  // the oldest gets on in every step
    };
    submit();
    while (!d.scheduler.idle() || submitted < prompts) {
      if (submitted < prompts && (d.scheduler.idle() || random.below(3) == 0)) submit();
      d.step();
      REQUIRE(d.steps <= limit);
    }
    d.run(limit);
    std::sort(d.done.begin(), d.done.end());
    REQUIRE(std::unique(d.done.begin(), d.done.end()) == d.done.end());
    REQUIRE(d.done.size() == expected);
    preemptions += d.scheduler.preemptions();
    waited += d.scheduler.preemptions() == 0;
  }
  CHECK(preemptions > 1000);
  CHECK(waited > 10);
}

TEST_CASE("sequences are taken out wherever they are, and leave nothing behind") {
  Driver d({4, 64, 4}, 6);
  for (int i = 0; i < 6; ++i) d.scheduler.submit(prompt(i, 3, 14));
  while (d.scheduler.preemptions() == 0) d.step();
  REQUIRE(d.scheduler.waiting().size() >= 3);
  const auto is_odd = [](const Sequence& s) { return s.id.prompt % 2 == 1; };
  std::vector<std::int64_t> removed;
  for (const Sequence& s : d.scheduler.remove_if(is_odd)) {
    CHECK(s.blocks.empty());
    removed.push_back(s.id.prompt);
  }
  CHECK(removed == std::vector<std::int64_t>{1, 3, 5});
  d.check_blocks();
  CHECK(d.scheduler.remove_if(is_odd).empty());
  d.run(200);
  CHECK(d.done == std::vector<ResponseId>{{0, 0}, {2, 0}, {4, 0}});
  for (int i = 0; i < 3; ++i) d.scheduler.submit(prompt(i, 3, 14));
  d.step();
  CHECK(d.scheduler.remove_if([](const Sequence&) { return true; }).size() == 3);
  CHECK(d.scheduler.idle());
}

TEST_CASE("two ranks that see the same tokens schedule alike") {
  Driver a({6, 9, 4}, 11), b({6, 9, 4}, 11);
  for (int i = 0; i < 9; ++i)
    for (Driver* d : {&a, &b}) d->scheduler.submit(prompt(i, 1 + 3 * i % 11, 5 + i, 1 + i % 3));
  while (!a.scheduler.idle()) {
    const auto x = a.scheduler.next_step(), y = b.scheduler.next_step();
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(x[i].count == y[i].count);
      CHECK(x[i].sequence->id == y[i].sequence->id);
      CHECK(x[i].sequence->blocks == y[i].sequence->blocks);
    }
    a.step();
    b.step();
  }
  CHECK(a.scheduler.preemptions() > 0);
  CHECK(b.scheduler.idle());
}

TEST_CASE("room for guesses comes from free blocks and goes back") {
  Scheduler scheduler({4, 16, 4}, 5);
  scheduler.submit(prompt(1, 7, 10));
  scheduler.submit(prompt(2, 7, 4));
  std::vector<Work> work = scheduler.next_step();
  REQUIRE(work.size() == 2);
  Sequence &first = *work[0].sequence, &second = *work[1].sequence;
  REQUIRE(scheduler.blocks().free() == 1);
  // One position is left in the last block, four are in the free one.
  CHECK(scheduler.extend(first, 9) == 5);
  CHECK(scheduler.blocks().free() == 0);
  CHECK(scheduler.extend(second, 3) == 1);
  CHECK(second.blocks.size() == 2);
  scheduler.truncate(first, 9);
  CHECK(first.computed == 9);
  CHECK(first.blocks.size() == 3);
  scheduler.truncate(first, 8);
  CHECK(first.blocks.size() == 2);
  CHECK(scheduler.blocks().free() == 1);
  CHECK(scheduler.preemptions() == 0);
}
