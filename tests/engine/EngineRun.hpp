// SPDX-License-Identifier: Apache-2.0
//
// Generations with the models of tests/golden, and their comparison bit for bit.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/Random.hpp"
#include "engine/Engine.hpp"
#include "model/GoldenModel.hpp"

namespace taper::test {

inline constexpr int kPositions = 512;  // of GoldenModel's rope table

inline Group world() {
  return Group::world(MPI_COMM_WORLD);
}

// As all generations that are compared draw.
inline SamplingOptions sampling(float temperature) {
  SamplingOptions o;
  o.temperature = temperature;
  o.seed = 31;
  o.iteration = 4;
  return o;
}

// Options for a model: everything fits, nothing waits.
inline EngineOptions roomy(const GoldenModel& m) {
  EngineOptions o;
  o.kv_blocks = 400;
  o.max_positions = kPositions;
  o.valid_ids = m.config.vocab;
  o.precision = precision(m.exec);
  return o;
}

// An engine with an arena of its own.
struct TestEngine {
  TestEngine(GoldenModel& m, const EngineOptions& options)
      : arena(plan(m, options)),
        engine(m.exec, {&*m.view, &m.parallel, options},
               EngineMemory::of(m.table, m.parallel, options), arena, MemoryPhase::kAlways,
               ConstFloatMatrix(m.rope.data(), kPositions, m.config.head_dim)) {}

  static MemoryPlan plan(const GoldenModel& m, const EngineOptions& options) {
    MemoryPlan plan;
    EngineMemory::of(m.table, m.parallel, options).add_memory(plan, MemoryPhase::kAlways);
    return plan;
  }

  Arena arena;
  Engine engine;
};

// All responses of a generation by their ids, and how they came about.
struct Generation {
  std::map<ResponseId, Completion> responses;
  std::int64_t preemptions = 0, steps = 0, prefill_rows = 0, decode_rows = 0, tokens = 0;
  int most_running = 0, largest_step = 0;
};

inline Generation drain(Engine& engine) {
  Generation g;
  while (!engine.idle()) {
    const StepReport report = engine.step();
    ++g.steps;
    g.prefill_rows += report.prefill_rows;
    g.decode_rows += report.decode_rows;
    g.most_running = std::max(g.most_running, report.running);
    g.largest_step = std::max(g.largest_step, report.prefill_rows + report.decode_rows);
    for (Completion& c : engine.take_completions()) {
      g.tokens += static_cast<std::int64_t>(c.response.size());
      g.responses[c.id] = std::move(c);
    }
  }
  g.preemptions = engine.preemptions();
  return g;
}

inline Generation generate(GoldenModel& m, const EngineOptions& options,
                           const SamplingOptions& sampling, const StopOptions& stops,
                           const std::vector<Request>& requests) {
  TestEngine test(m, options);
  test.engine.begin(sampling, stops);
  for (const Request& r : requests) test.engine.submit(r);
  return drain(test.engine);
}

inline bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Nothing if both hold the same responses with the same bits, else what differs first.
inline std::string difference(const Generation& a, const Generation& b) {
  std::ostringstream text;
  if (a.responses.size() != b.responses.size()) {
    text << a.responses.size() << " and " << b.responses.size() << " responses";
    return text.str();
  }
  for (const auto& [key, x] : a.responses) {
    text.str("");
    text << "request " << key.prompt << ", sample " << key.sample << ": ";
    const auto at = b.responses.find(key);
    if (at == b.responses.end()) return text.str() + "missing";
    const Completion& y = at->second;
    if (x.prompt != y.prompt) return text.str() + "prompts differ";
    if (x.response != y.response) return text.str() + "tokens differ";
    if (x.finish != y.finish) return text.str() + "finish reasons differ";
    if (!same_floats(x.log_probs, y.log_probs)) return text.str() + "log-probs differ";
    if (!same_floats(x.kept_mass, y.kept_mass)) return text.str() + "kept masses differ";
  }
  return "";
}

inline std::vector<std::int32_t> random_prompt(int ordinal, int length, int vocab) {
  const CounterRandom random(2024);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < length; ++i) {
    const RandomKey key{RandomPurpose::kTest,          0, static_cast<std::uint64_t>(ordinal), 0,
                        static_cast<std::uint64_t>(i), 0};
    ids.push_back(static_cast<std::int32_t>(random.below(key, static_cast<std::uint64_t>(vocab))));
  }
  return ids;
}

// Prompts with lengths around the borders of pages (64) and of attention chunks (256), one to five
// samples each.
inline std::vector<Request> mixed_requests(const GoldenModel& m, int count, int max_new_tokens) {
  constexpr int kLengths[] = {1, 5, 63, 64, 65, 17, 127, 128, 130, 2, 255, 256, 258, 31, 200, 300};
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request r;
    r.first.prompt = i;
    r.samples = 1 + (3 * i) % 5;
    r.prompt = random_prompt(i, kLengths[i % 16], m.config.vocab);
    r.max_new_tokens = max_new_tokens - i % 7;
    requests.push_back(std::move(r));
  }
  return requests;
}

inline int responses_of(const std::vector<Request>& requests) {
  int sum = 0;
  for (const Request& r : requests) sum += r.samples;
  return sum;
}

// Ids that end a response: about one token in fifty, so that lengths differ.
inline StopOptions some_stops() {
  return {{2, 40, 81, 122, 163, 204, 245}, {}, {}};
}

// How many tokens of a generation have another log-prob in the training forward pass of the whole
// sequences.
inline int training_differences(GoldenModel& m, const Generation& g, float temperature) {
  int different = 0;
  PackedSequences batch;
  std::vector<int> rows;
  std::vector<std::int32_t> targets;
  std::vector<float> expected;
  const auto flush = [&] {
    if (rows.empty()) return;
    std::vector<float> log_probs(rows.size());
    m.pass->forward(m.exec, *m.view, m.parallel, batch);
    m.pass->log_probs(m.exec, *m.view, m.parallel, rows, targets, {m.config.vocab, temperature},
                      log_probs, {});
    for (std::size_t i = 0; i < rows.size(); ++i)
      different += std::memcmp(&log_probs[i], &expected[i], sizeof(float)) != 0;
    batch = {};
    rows.clear();
    targets.clear();
    expected.clear();
  };
  for (const auto& [key, c] : g.responses) {
    const int length = static_cast<int>(c.prompt.size() + c.response.size());
    if (batch.rows() + length > TrainPassOptions().max_rows) flush();
    const int begin = batch.rows();
    batch.ids.insert(batch.ids.end(), c.prompt.begin(), c.prompt.end());
    batch.ids.insert(batch.ids.end(), c.response.begin(), c.response.end());
    batch.lengths.push_back(length);
    for (std::size_t i = 0; i < c.response.size(); ++i) {
      rows.push_back(begin + static_cast<int>(c.prompt.size() + i) - 1);
      targets.push_back(c.response[i]);
      expected.push_back(c.log_probs[i]);
    }
  }
  flush();
  return different;
}

}  // namespace taper::test
