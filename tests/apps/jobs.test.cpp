// SPDX-License-Identifier: Apache-2.0
//
// Scores and responses have the same bits for every layout and number of ranks: the reference is
// each rank alone.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "infer/EvalJob.hpp"
#include "infer/ScoreJob.hpp"
#include "io/Safetensors.hpp"
#include "support/AllSamples.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;

namespace {

using Sequences = std::vector<std::vector<std::int32_t>>;

std::vector<int> degrees(int ranks) {
  std::vector<int> list;
  for (int t = 1; t <= ranks; ++t)
    if (ranks % t == 0) list.push_back(t);
  return list;
}

std::string model_directory(const std::string& name) {
  return TAPER_GOLDEN_DIR "/models/" + name;
}

// Sequences of uneven lengths.
Sequences some_sequences(int count, int vocab) {
  Sequences list;
  for (int i = 0; i < count; ++i) {
    list.emplace_back();
    for (int k = 0; k < 1 + (i * 23) % 71; ++k)
      list.back().push_back((7 * i + 13 * k + k * k) % vocab);
  }
  return list;
}

template <class T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
  const auto bytes = file.tensor(name).bytes;
  std::vector<T> list(bytes.size() / sizeof(T));
  std::memcpy(list.data(), bytes.data(), bytes.size());
  return list;
}

std::vector<std::vector<float>> score(TestRanks& world, const std::string& model,
                                      const Sequences& sequences, ScoreOptions options) {
  ModelFiles files(model_directory(model));
  return ScoreJob(options, files, sequences, world.ranks).run();
}

std::vector<Sample> respond(TestRanks& world, const std::string& model, const Sequences& prompts,
                            GenerateOptions options) {
  ModelFiles files(model_directory(model));
  SampleSet samples = GenerateJob(options, files, prompts, world.ranks).run();
  return all_samples(samples);
}

void check_equal(const std::vector<Sample>& a, const std::vector<Sample>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].ordinal == b[i].ordinal);
    CHECK(a[i].sample == b[i].sample);
    CHECK(a[i].response == b[i].response);
    CHECK(a[i].log_probs == b[i].log_probs);
    CHECK(a[i].finish == b[i].finish);
  }
}

}  // namespace

TEST_CASE("log-probs have the same bits for every layout and micro-batch") {
  for (const char* model : {"llama_b", "qwen3_a"})
    for (const WeightType type : {WeightType::kF32, WeightType::kBf16}) {
      const auto sequences = some_sequences(9, 320);
      TestRanks alone({1}, MPI_COMM_SELF, 1);
      ScoreOptions options;
      options.type = type;
      const auto reference = score(alone, model, sequences, options);
      REQUIRE(reference.size() == sequences.size());
      for (const int tp : degrees(world_size())) {
        if (tp > 2 && std::string(model) != "llama_b") continue;  // two blocks of MLP columns
        INFO(model << ", tensor-parallel degree " << tp);
        TestRanks world({tp});
        options.tp = tp;
        for (const int max_tokens : {1, 100, 2048}) {
          if (max_tokens == 1 && world_size() > 1) continue;  // nothing that 100 does not show
          options.max_tokens = max_tokens;
          CHECK(score(world, model, sequences, options) == reference);
        }
      }
    }
}

TEST_CASE("log-probs are those of the golden files") {
  for (const char* model : {"llama_a", "llama_b", "qwen2_b", "qwen3_b"}) {
    INFO(model);
    const auto golden = SafetensorsFile::open(model_directory(model) + "/golden.safetensors");
    const auto ids = values<std::int64_t>(golden, "input_ids"),
               offsets = values<std::int64_t>(golden, "offsets");
    const auto expected = values<float>(golden, "log_probs");
    Sequences sequences;
    for (int s = 0; s < 3; ++s)
      sequences.emplace_back(ids.begin() + offsets[s], ids.begin() + offsets[s + 1]);
    TestRanks world({1});
    const auto scores = score(world, model, sequences, {});
    for (int s = 0; s < 3; ++s)
      for (std::size_t k = 0; k < scores[s].size(); ++k)
        CHECK(std::abs(scores[s][k] - expected[offsets[s] + 1 + static_cast<int>(k)]) < 4e-5f);
  }
}

TEST_CASE("responses have the same bits for every layout, and scores agree with them") {
  auto prompts = some_sequences(5, 320);
  for (const float temperature : {0.0f, 1.0f}) {
    GenerateOptions options;
    options.type = WeightType::kF32;
    options.samples = temperature > 0.0f ? 3 : 1;
    options.max_new_tokens = 12;
    options.sampling.temperature = temperature;
    options.sampling.seed = 11;
    TestRanks alone({1}, MPI_COMM_SELF, 1);
    const auto reference = respond(alone, "llama_b", prompts, options);
    REQUIRE(reference.size() == prompts.size() * options.samples);
    for (const int tp : degrees(world_size())) {
      INFO("tensor-parallel degree " << tp << ", temperature " << temperature);
      TestRanks world({tp});
      options.tp = tp;
      options.max_running = 2 + tp;
      check_equal(respond(world, "llama_b", prompts, options), reference);
    }
    Sequences whole;
    for (const Sample& s : reference) {
      whole.push_back(prompts[s.ordinal]);
      whole.back().insert(whole.back().end(), s.response.begin(), s.response.end());
    }
    TestRanks world({1});
    const auto scores = score(world, "llama_b", whole, {});
    for (std::size_t i = 0; i < whole.size(); ++i)
      CHECK(std::vector<float>(scores[i].end() - std::ssize(reference[i].log_probs),
                               scores[i].end()) == reference[i].log_probs);
  }
}

TEST_CASE("one prompt's samples are shared out over replicas without changing one") {
  GenerateOptions options;
  options.samples = 7;
  options.max_new_tokens = 12;
  const auto prompts = some_sequences(2, 320);
  const Sequences one{prompts[1]};
  TestRanks alone({1}, MPI_COMM_SELF, 1), world({1});
  check_equal(respond(world, "qwen2_a", one, options), respond(alone, "qwen2_a", one, options));
}

TEST_CASE("the context bounds a response") {
  ModelFiles files(model_directory("llama_a"));
  const int context = files.config.max_positions;
  Sequences prompts = some_sequences(1, 320);
  prompts.emplace_back(static_cast<std::size_t>(context - 3), 7);
  GenerateOptions options;
  options.max_new_tokens = 8;
  TestRanks world({1});
  SampleSet set = GenerateJob(options, files, prompts, world.ranks).run();
  const auto samples = all_samples(set);
  CHECK(samples[0].response.size() <= 8);
  CHECK(samples[1].response.size() <= 3);
}
