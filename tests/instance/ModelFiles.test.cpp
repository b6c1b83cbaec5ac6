// SPDX-License-Identifier: Apache-2.0
#include "instance/ModelFiles.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "io/Json.hpp"
#include "model/RopeTable.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const fs::path kModel = TAPER_DATA_DIR "/model";

// A directory with the configuration of the embedded model, changed, and without weights.
struct Directory : TestRanks {
  explicit Directory(const Json& changes = Json::object()) {
    Json config = read_json_file(kModel / "config.json");
    config.update(changes);
    spill(scratch / "config.json", config.dump());
  }
  const fs::path& path() const { return scratch.path(); }
  std::string error(const HeadChoice& head = {}) const {
    return message_of([&] { ModelFiles(path(), "Model/Directory", head); });
  }

  Scratch scratch;
};

}  // namespace

TEST_CASE("a directory says what model it has before a weight is read") {
  const Directory d;
  const ModelFiles files(d.path(), "--model");
  CHECK(files.directory == d.path());
  CHECK(files.config.vocab == ModelFiles(kModel).config.vocab);
  CHECK(files.table.pieces() == ModelFiles(kModel).table.pieces());
  CHECK(message_of([&] { (void)files.open_weights(); }) != "");
  CHECK(message_of([] { (void)ModelFiles(kModel).open_weights(); }).empty());
}

TEST_CASE("errors name the option that named the directory") {
  CHECK_THAT(message_of([] { ModelFiles("/nowhere/model", "Critic/Model Directory"); }),
             ContainsSubstring("Critic/Model Directory") && ContainsSubstring("/nowhere/model"));
  const Directory rewarding(
      {{"architectures", {"LlamaForSequenceClassification"}}, {"num_labels", 1}});
  CHECK_THAT(rewarding.error(), ContainsSubstring("Model/Directory") &&
                                    ContainsSubstring("reward model") &&
                                    ContainsSubstring("name a language model"));
  CHECK(rewarding.error({OutputHead::kScalar}).empty());
}

TEST_CASE("a scalar head that the directory has not is drawn from the seed of who wants one") {
  const Directory language;
  const ModelFiles drawn(language.path(), "--model", {OutputHead::kScalar, 7});
  CHECK(drawn.config.has_scalar_head());
  CHECK(drawn.score_seed == 7u);
  const Directory rewarding(
      {{"architectures", {"LlamaForSequenceClassification"}}, {"num_labels", 1}});
  CHECK(!ModelFiles(rewarding.path(), "--model", {OutputHead::kScalar, 7}).score_seed);
}

TEST_CASE("a model without a tokenizer has all its rows as ids, and no text") {
  const Directory d;
  const ModelFiles bare(d.path());
  CHECK(!bare.has_tokenizer());
  CHECK(bare.valid_ids() == bare.config.vocab);
  CHECK_THAT(message_of([&] { (void)bare.tokenizer(); }),
             ContainsSubstring("has no tokenizer.json") && ContainsSubstring("\"tokens\""));
  CHECK_THAT(message_of([&] { bare.require_tokenizer("scores are of texts"); }),
             ContainsSubstring("tokenizer.json") && ContainsSubstring("scores are of texts"));
  const ModelFiles whole(kModel);
  CHECK(whole.valid_ids() == std::min(whole.tokenizer().vocab_size(), whole.config.vocab));
  CHECK(message_of([&] { whole.require_tokenizer(""); }).empty());
}

TEST_CASE("a tokenizer with more ids than the model has rows is refused") {
  const int ids = ModelFiles(kModel).tokenizer().vocab_size();
  const Directory d(Json{{"vocab_size", ids - 1}});
  CHECK(d.error().empty());
  fs::copy_file(kModel / "tokenizer.json", d.path() / "tokenizer.json");
  CHECK_THAT(d.error(), ContainsSubstring("does not match the model") &&
                            ContainsSubstring(std::to_string(ids - 1)));
}

TEST_CASE("sequences beyond the context are refused with what to lower") {
  const Directory d(Json{{"max_position_embeddings", 64}});
  ModelFiles files(d.path(), "--model");
  CHECK(message_of([&] { files.require_context(64, "--max-new-tokens"); }).empty());
  CHECK_THAT(message_of([&] { files.require_context(65, "--max-new-tokens"); }),
             ContainsSubstring("--model") && ContainsSubstring("64 positions") &&
                 ContainsSubstring("lower --max-new-tokens"));
  CHECK(message_of([&] { (void)files.rope_table(65); }) != "");
}

TEST_CASE("the rope table grows with the longest sequences asked for") {
  const Directory d;
  ModelFiles files(d.path());
  for (const int positions : {8, 32, 16}) {
    const ConstFloatMatrix table = files.rope_table(positions);
    REQUIRE(table.extent_int(0) == positions);
    REQUIRE(table.extent_int(1) == files.config.head_dim);
    const std::vector<float> expected = make_rope_table(files.config, positions);
    CHECK(std::equal(expected.begin(), expected.end(), table.data()));
  }
}
