// SPDX-License-Identifier: Apache-2.0
#include "instance/SameTokenizer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "comm/Collectives.hpp"
#include "io/Json.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const fs::path kPolicy = TAPER_DATA_DIR "/model";

struct Fixture : TestRanks {
  Fixture() {
    if (ranks.rank() == 0) {
      fs::create_directories(scratch / "judge");
      fs::copy_file(kPolicy / "config.json", scratch / "judge/config.json");
    }
    barrier(ranks.world());
  }

  // Gives the judging model that text as its tokenizer.json.
  void write(const std::string& text) const {
    barrier(ranks.world());
    if (ranks.rank() == 0) spill(scratch / "judge/tokenizer.json", text);
    barrier(ranks.world());
  }
  std::string error() const {
    return message_of([&] {
      require_same_tokenizer(policy, ModelFiles(scratch / "judge"), ranks, "Critic/Model Directory",
                             "name another critic");
    });
  }

  Scratch scratch;
  ModelFiles policy{kPolicy};
};

}  // namespace

TEST_CASE("a tokenizer that was saved anew is the same, one with other ids is not") {
  const Fixture f;
  CHECK(f.error().empty());  // without a tokenizer of its own
  const std::string text = slurp(kPolicy / "tokenizer.json");
  f.write(text);
  CHECK(f.error().empty());
  Json json = parse_json(text, "tokenizer.json");
  json["padding"] = {{"strategy", "BatchLongest"}};
  json["post_processor"] = nullptr;
  f.write(json.dump(1));
  CHECK(f.error().empty());
  std::string other = text;
  const auto at = other.find("<|eos|>");
  REQUIRE(at != std::string::npos);
  f.write(other.replace(at, 7, "<|end|>"));
  CHECK_THAT(f.error(), ContainsSubstring("Critic/Model Directory") &&
                            ContainsSubstring("another tokenizer than the policy ('") &&
                            ContainsSubstring("name another critic"));
}

TEST_CASE("a model without embeddings for all of the policy's ids is refused") {
  Fixture f;
  barrier(f.ranks.world());
  if (f.ranks.rank() == 0) {
    Json config = read_json_file(kPolicy / "config.json");
    config["vocab_size"] = f.policy.valid_ids() - 1;
    spill(f.scratch / "judge/config.json", config.dump());
  }
  barrier(f.ranks.world());
  CHECK_THAT(f.error(), ContainsSubstring("embeddings (the policy has ids up to") &&
                            ContainsSubstring("name another critic"));
}
