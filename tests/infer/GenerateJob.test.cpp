// SPDX-License-Identifier: Apache-2.0
//
// Responses have the same bits for every layout and number of ranks: the reference is each rank
// alone.
#include "infer/GenerateJob.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "infer/ScoredModels.hpp"
#include "io/Json.hpp"
#include "support/AllSamples.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<Sample> respond(TestRanks& world, const std::string& model, const Sequences& prompts,
                            GenerateOptions options) {
  ModelFiles files(model_directory(model));
  SampleSet samples = GenerateJob(options, files, prompts, world.ranks).run();
  return all_samples(samples);
}

void check_equal(const std::vector<Sample>& a, const std::vector<Sample>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].id.prompt == b[i].id.prompt);
    CHECK(a[i].id.sample == b[i].id.sample);
    CHECK(a[i].response == b[i].response);
    CHECK(a[i].log_probs == b[i].log_probs);
    CHECK(a[i].finish == b[i].finish);
  }
}

}  // namespace

TEST_CASE("text of responses does not command a terminal") {
  const ModelFiles files(TAPER_DATA_DIR "/model");
  const std::string said = "a\x1b[31m\x07\x7f\x01";
  const auto ids = files.tokenizer().encode(said, AddSpecial::kNo);
  Sample sample;
  sample.response.assign(ids.begin(), ids.end());
  sample.log_probs.assign(ids.size(), -1.0f);
  const std::string line = response_line(sample, files);
  CHECK(std::none_of(line.begin(), line.end() - 1,
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }));
  CHECK_THAT(line, ContainsSubstring("a\\u001b[31m\\u0007\\u007f\\u0001"));
  CHECK(parse_json(line, "line")["text"] == said);
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
      whole.push_back(prompts[s.id.prompt]);
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

TEST_CASE("the file has the line of each response in order, whoever made it") {
  GenerateOptions options;
  options.samples = 3;
  options.max_new_tokens = 6;
  const auto prompts = some_sequences(5, 320);
  ModelFiles files(model_directory("llama_b"));
  TestRanks world({1});
  Scratch scratch;
  SampleSet samples = GenerateJob(options, files, prompts, world.ranks).run();
  const std::string path = (scratch / "responses.jsonl").string();
  write_responses(path, samples, files, world.ranks.world());
  std::string expected;
  for (const Sample& s : all_samples(samples)) expected += response_line(s, files);
  CHECK(std::count(expected.begin(), expected.end(), '\n') == 15);
  if (world.ranks.rank() == 0) CHECK(slurp(path) == expected);
}
