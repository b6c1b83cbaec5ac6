// SPDX-License-Identifier: Apache-2.0
//
// The exactness contract across changes of layout: whatever the steps at which it changes, the
// tokens and the bits of their log-probs are those of one rank that never changed.
#include "reshape/Reshaper.hpp"

#include <catch2/catch_test_macros.hpp>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "reshape/Fleet.hpp"

using namespace taper;
using namespace taper::test;

namespace {

int ranks() {
  return Group::world(MPI_COMM_WORLD).size();
}

// Little room: prompts are read in chunks, requests wait, and blocks run out.
EngineOptions tight(const GoldenModel& m, int tp) {
  EngineOptions o;
  o.scheduler = {4 * tp, 24 + 4 * tp, 64};
  o.kv_blocks = 6 * tp;
  o.max_positions = kPositions;
  o.valid_ids = m.config.vocab;
  o.logit_rows = 8;
  o.precision = precision(m.exec);
  return o;
}

std::vector<Request> small_requests(int vocab) {
  constexpr int kLengths[] = {70, 5, 130, 62, 1, 200};
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back({{i, 0}, 1 + i % 3, random_prompt(i, kLengths[i], vocab), 22 - 3 * (i % 4)});
  return requests;
}

SamplingOptions sampling() {
  SamplingOptions o;
  o.temperature = 0.8f;
  o.seed = 9;
  o.iteration = 2;
  return o;
}

const StopOptions kStops{{2, 40, 81}, {}, {}};

// On one rank, with room for everything.
Generation static_run(const std::string& name, const SamplingOptions& o = sampling(),
                      WeightType type = WeightType::kF32, const Precision& precision = {}) {
  const Group self = Group::self();
  GoldenModel m(name, self, type, {.precision = precision});
  return generate(m, roomy(m), o, kStops, small_requests(m.config.vocab));
}

struct Case {
  std::string model, from, to;
  int smallest = 1;
};

std::vector<Case> cases() {
  switch (ranks()) {
    case 1:
      return {{"llama_b", "1x1", "1x1"}};
    case 2:  // llama_c: three KV heads; qwen2_b: one KV head, two owners
      return {{"llama_b", "1x2", "2x1"}, {"llama_c", "1x2", "2x1"}, {"qwen2_b", "1x2", "2x1"}};
    case 3:
      return {{"llama_b", "1x3", "3x1"}};
    default:
      return {{"llama_b", "1x4", "2x2"},
              {"llama_b", "1x4", "4x1"},
              {"llama_b", "2x2", "4x1", 2},
              {"llama_b", "2+1+1", "1+1+2"},
              {"llama_b", "1x4", "2+1+1"}};
  }
}

// What happened in all runs of a case, over all ranks.
struct Coverage {
  std::int64_t waiting = 0, running = 0, reading = 0, preempted = 0, bytes = 0, recomputed = 0;

  void add(const Fleet& f, const ReshapeReport& r) {
    waiting += f.waiting_seen;
    running += f.running_seen;
    reading += f.reading_seen;
    preempted += f.preempted_seen;
    bytes += r.bytes_planned;
    recomputed += r.positions_recomputed;
  }
};

// Changes layouts at `first`, then every `period` steps along `route` until it ends.
void run(Fleet& fleet, const std::string& start, const std::vector<Switch>& route, int first,
         int period, Coverage& coverage, const SamplingOptions& o = sampling()) {
  fleet.begin(start, o, kStops, small_requests(fleet.model.config.vocab));
  for (int i = 0; i < first; ++i) fleet.step();
  for (std::size_t at = 0; at < route.size(); ++at) {
    const ReshapeReport report = fleet.reshape(route[at]);
    REQUIRE(report.done);
    coverage.add(fleet, report);
    for (int i = 0; i < period && at + 1 < route.size(); ++i) fleet.step();
  }
  fleet.finish();
}

}  // namespace

TEST_CASE("a change of layout at any step changes no token and no bit of a log-prob") {
  const auto all = cases();
  Coverage seen;
  for (const Case& c : all) {
    INFO(c.model << " " << c.from << " " << c.to);
    const Generation reference = static_run(c.model);
    REQUIRE(reference.responses.size() == 12);
    Fleet fleet(c.model, DivisorChain::of(ranks()), c.smallest, tight);
    const int stride = &c == &all.front() ? 1 : 6;
    for (const bool up : {true, false})
      for (int step = 0; step < 36; step += stride) {
        INFO("step " << step << (up ? ", up" : ", down"));
        run(fleet, up ? c.from : c.to, {{up ? c.to : c.from}}, step, 0, seen);
        REQUIRE(difference(reference, fleet) == "");
      }
  }
  CHECK(seen.running > 0);
  CHECK(seen.waiting > 0);
  CHECK(seen.reading > 0);
  CHECK(seen.preempted > 0);
  if (ranks() > 1) CHECK(seen.bytes > 0);
}

TEST_CASE("several changes in one generation, moved, recomputed and mixed") {
  for (const Case& c : cases()) {
    INFO(c.model << " " << c.from << " " << c.to);
    const Generation reference = static_run(c.model);
    Fleet fleet(c.model, DivisorChain::of(ranks()), c.smallest, tight);
    for (const Kv kv : {Kv::kMove, Kv::kRecompute, Kv::kMixed}) {
      Coverage seen;
      for (const int first : {1, 6, 13}) {
        INFO("first at " << first << ", kind " << static_cast<int>(kv));
        run(fleet, c.from, {{c.to, kv}, {c.from, kv}, {c.to, kv}, {c.from, Kv::kMove, true}}, first,
            3, seen);
        REQUIRE(difference(reference, fleet) == "");
      }
      if (kv == Kv::kRecompute && ranks() > 1) CHECK(seen.recomputed > 0);
    }
  }
}

TEST_CASE("a repetition penalty goes with the sequences through changes of layout") {
  SamplingOptions o = sampling();
  o.repetition_penalty = 1.5f;
  for (const Case& c : cases()) {
    INFO(c.model << " " << c.from << " " << c.to);
    const Generation reference = static_run(c.model, o);
    CHECK(difference(static_run(c.model), reference) != "");
    Fleet fleet(c.model, DivisorChain::of(ranks()), c.smallest, tight);
    Coverage seen;
    for (const Kv kv : {Kv::kMove, Kv::kRecompute}) {
      run(fleet, c.from, {{c.to, kv}, {c.from, kv}}, 5, 4, seen, o);
      REQUIRE(difference(reference, fleet) == "");
    }
  }
}

TEST_CASE("changes of layout in bf16, over keys and values in bf16, change no bit") {
  const Precision bf16{Arithmetic::kBf16, KvType::kBf16};
  for (const Case& c : cases()) {
    INFO(c.model << " " << c.from << " " << c.to);
    const Generation reference = static_run(c.model, sampling(), WeightType::kBf16, bf16);
    CHECK(difference(static_run(c.model), reference) != "");
    Fleet fleet(c.model, DivisorChain::of(ranks()), c.smallest, tight, {}, WeightType::kBf16,
                {WaitMode::kYield}, bf16);
    Coverage seen;
    for (const Kv kv : {Kv::kMove, Kv::kRecompute}) {
      run(fleet, c.from, {{c.to, kv}, {c.from, kv}, {c.to, kv}}, 5, 4, seen);
      REQUIRE(difference(reference, fleet) == "");
    }
    if (ranks() > 1) CHECK(seen.bytes > 0);
  }
}

TEST_CASE("sequences move between replicas of equal degree") {
  if (ranks() == 1) return;
  const Generation reference = static_run("llama_b");
  Fleet fleet("llama_b", DivisorChain::of(ranks()), 1, tight);
  const std::string layout = to_string(Layout::uniform(1, fleet.chain));
  const auto requests = small_requests(fleet.model.config.vocab);
  Coverage seen;
  for (const int step : {2, 5, 9, 14}) {
    // All work at replica 0 at first.
    fleet.begin(layout, sampling(), kStops, {});
    if (fleet.rank() == 0)
      for (const Request& r : requests) fleet.engine->submit(r);
    for (int i = 0; i < step; ++i) fleet.step();
    for (int i = 0; i < 3; ++i) {
      const ReshapeReport report = fleet.reshape({layout, Kv::kMove, i > 0, i == 0});
      REQUIRE(report.done);
      seen.add(fleet, report);
      fleet.step();
    }
    CHECK((!fleet.engine->idle() || step > 9));
    fleet.finish();
    REQUIRE(difference(reference, fleet) == "");
  }
  CHECK(seen.bytes > 0);
}

TEST_CASE("responses say where they were produced") {
  if (ranks() != 2) return;
  Fleet fleet("llama_b", DivisorChain::of(2), 1, tight);
  Coverage seen;
  run(fleet, "1x2", {{"2x1"}, {"1x2"}}, 12, 4, seen);
  int switched = 0;
  for (const auto& [key, c] : fleet.seen.responses) {
    REQUIRE(!c.spans.empty());
    CHECK(c.spans.front().first_token == 0);
    for (std::size_t i = 1; i < c.spans.size(); ++i) {
      CHECK(c.spans[i].first_token > c.spans[i - 1].first_token);
      CHECK(c.spans[i].first_token < static_cast<int>(c.response.size()));
      switched += c.spans[i].tp != c.spans[i - 1].tp;
    }
    for (const auto& span : c.spans) CHECK(span.replica < 2 / span.tp);
  }
  std::vector<std::int64_t> all{switched};
  all_reduce_sum(fleet.groups.world(), all);
  CHECK(all[0] > 3);
}

TEST_CASE("weights and keys seen through any layout give the same teacher-forced log-probs") {
  const Case c = cases().back();
  Fleet fleet(c.model, DivisorChain::of(ranks()), c.smallest, tight);
  const Group self = Group::self();
  GoldenModel whole(c.model, self);
  const auto ids = staged(random_prompt(3, 150, whole.config.vocab));
  const auto log_probs = [&](GoldenModel& m, const ModelView& view, const ModelParallel& parallel,
                             Staged<float>& memory) {
    const int n = static_cast<int>(ids.size()), chunk = 32;
    const BlockShape shape{m.config.layers, parallel.shard().kv_heads().size(), m.config.head_dim};
    const std::int64_t pass_floats = InferencePass::floats(m.table, parallel, n, m.exec.arithmetic);
    const std::int64_t head_floats = TokenHead::floats(m.table, parallel, chunk);
    memory.assign(pass_floats + head_floats + 3 * shape.floats() + 64, 0.0f);
    float* const pass_memory =
        memory.data() + 16 - (reinterpret_cast<std::uintptr_t>(memory.data()) / 4) % 16;
    float* const head_memory = pass_memory + (pass_floats + 15) / 16 * 16;
    const BlockPool pool(shape, 3,
                         {head_memory + (head_floats + 15) / 16 * 16, 3 * shape.layer_floats()});
    InferencePass pass(m.table, parallel, n, m.exec.arithmetic, pass_memory,
                       ConstFloatMatrix(m.rope.data(), kPositions, m.config.head_dim));
    TokenHead head(m.table, parallel, chunk, head_memory);
    const Staged<std::int32_t> blocks{2, 0, 1};
    Staged<std::int32_t> positions(n);
    std::vector<int> rows(n - 1);
    for (int i = 0; i < n; ++i) positions[i] = i;
    for (int i = 0; i + 1 < n; ++i) rows[i] = i;
    const Staged<AttentionSegment> segments{{blocks.data(), 0, n, 0}};
    const FloatMatrix hidden =
        pass.forward(m.exec, view, parallel,
                     {VectorView<const std::int32_t, Exec>(ids.data(), ids.size()),
                      VectorView<const std::int32_t, Exec>(positions.data(), positions.size()),
                      VectorView<const AttentionSegment, Exec>(segments.data(), segments.size())},
                     pool.pages());
    std::vector<float> result(n - 1);
    head.log_probs(m.exec, view, parallel, hidden, rows,
                   std::span<const std::int32_t>(ids).subspan(1), {m.config.vocab, 1.0f}, result,
                   {});
    return result;
  };
  Staged<float> memory;
  const auto expected = log_probs(whole, *whole.view, whole.parallel, memory);
  Coverage seen;
  for (const std::string& layout : {c.to, c.from, c.to}) {
    run(fleet, layout == c.to ? c.from : c.to, {{layout}}, 7, 0, seen);
    const int tp = fleet.engine->parallel().group().size();
    CHECK(same_floats(log_probs(fleet.model, fleet.views.at(tp), fleet.parallels.at(tp), memory),
                      expected));
  }
}

TEST_CASE("a change that does not fit leaves all ranks as they were") {
  if (ranks() == 1) return;
  const Generation reference = static_run("llama_b");
  ReshaperOptions little;
  little.extra_bytes = 2000;
  Fleet fleet("llama_b", DivisorChain::of(ranks()), 1, tight, little);
  const std::string from = to_string(Layout::uniform(1, fleet.chain)),
                    to = to_string(Layout::uniform(ranks(), fleet.chain));
  fleet.begin(from, sampling(), kStops, small_requests(fleet.model.config.vocab));
  for (int i = 0; i < 8; ++i) fleet.step();
  const ReshapeReport report = fleet.reshape({to});
  CHECK_FALSE(report.done);
  CHECK(report.problem.find("the layout stays " + from) != std::string::npos);
  CHECK(report.bytes_sent == 0);
  CHECK(fleet.engine->parallel().group().size() == 1);
  fleet.finish();
  CHECK(difference(reference, fleet) == "");
}

TEST_CASE("ranks with different reasons for a change are told") {
  if (ranks() != 2) return;
  Fleet fleet("llama_b", DivisorChain::of(2), 1, tight);
  fleet.begin("1x2", sampling(), kStops, {});
  const LayoutChange change{fleet.layout_of("1x2"), fleet.layout_of("2x1"),
                            static_cast<std::uint64_t>(fleet.rank())};
  CHECK_THROWS_AS(fleet.reshaper->meet(change, *fleet.engine), Error);
}
