// SPDX-License-Identifier: Apache-2.0
//
// Scores have the same bits for every layout and number of ranks: the reference is each rank alone.
#include "infer/ScoreJob.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "infer/ScoredModels.hpp"
#include "io/Json.hpp"
#include "io/Safetensors.hpp"
#include "support/Messages.hpp"

using namespace taper;
using namespace taper::test;

namespace {

template <class T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
  const auto bytes = file.tensor(name).bytes;
  std::vector<T> list(bytes.size() / sizeof(T));
  std::memcpy(list.data(), bytes.data(), bytes.size());
  return list;
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

TEST_CASE("a sequence of one token has no log-probs, and the others keep their places") {
  TestRanks world({1});
  const Sequences sequences{{5}, {5, 9, 7}, {9}};
  const auto scores = score(world, "llama_a", sequences, {});
  REQUIRE(scores.size() == 3);
  CHECK(scores[0].empty());
  CHECK(scores[1].size() == 2);
  CHECK(scores[2].empty());
}

TEST_CASE("a line has the log-probs of the response, or all behind a null") {
  const std::vector<float> log_probs{-0.5f, -1.25f, -0.1f};  // of tokens 1, 2 and 3
  CHECK(score_line(log_probs, 0) == "{\"log_probs\": [null, -0.5, -1.25, -0.1]}\n");
  CHECK(score_line(log_probs, 1) == "{\"log_probs\": [-0.5, -1.25, -0.1]}\n");
  CHECK(score_line(log_probs, 3) == "{\"log_probs\": [-0.1]}\n");
  CHECK(score_line({}, 0) == "{\"log_probs\": [null]}\n");
  CHECK(score_line({}, 1) == "{\"log_probs\": []}\n");
  const float third = -1.0f / 3.0f;
  CHECK(parse_json(score_line({third}, 1), "line")["log_probs"][0].get<float>() == third);
  CHECK_THAT(message_of([] { score_line({std::numeric_limits<float>::quiet_NaN()}, 1); }),
             Catch::Matchers::ContainsSubstring("a log-prob is nan"));
}
