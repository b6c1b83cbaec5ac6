// SPDX-License-Identifier: Apache-2.0
//
// taper draft, and taper generate with what it makes.
#include "Commands.hpp"

using namespace taper;
using namespace taper::commands;

TEST_CASE("a draft model is cut out of a model and changes no response") {
  const Scratch scratch;
  const std::string model = scratch / "model", draft = scratch / "draft";
  spill(scratch / "in.jsonl", "{\"tokens\": [5, 9, 7]}\n{\"tokens\": [8, 8, 1]}\n");
  const Outcome made = run("draft --model " + model + " --layers 1 --output " + draft);
  INFO(made.text);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.text, ContainsSubstring("1 layer of 2"));
  const std::string generate = "generate --model " + model + " --prompts " + scratch / "in.jsonl" +
                               " --max-new-tokens 20 --samples 2 --output ";
  const Outcome plain = run(generate + scratch / "plain.jsonl");
  INFO(plain.text);
  REQUIRE(plain.code == 0);
  const Outcome drafted = run(generate + scratch / "drafted.jsonl" + " --speculation fixed" +
                              " --draft-model " + draft);
  INFO(drafted.text);
  REQUIRE(drafted.code == 0);
  CHECK(slurp(scratch / "plain.jsonl") == slurp(scratch / "drafted.jsonl"));
  CHECK_THAT(drafted.text, ContainsSubstring("tokens per sequence and step"));
  const Outcome same = run("draft --model " + model + " --layers 1 --output " + model);
  CHECK(same.code == 2);
  CHECK_THAT(same.text, ContainsSubstring("would replace it"));
  const Outcome bad = run("draft --model " + model + " --layers 7 --output " + draft);
  CHECK(bad.code == 2);
  CHECK_THAT(bad.text, ContainsSubstring("layer 7 does not exist"));
}
