// SPDX-License-Identifier: Apache-2.0
//
// The arguments that taper train, sft and reward-model have in common.
#include "Commands.hpp"

using namespace taper;
using namespace taper::commands;

namespace {

const std::string kBroken = "TAPER_DEADLINE=tomorrow";

}  // namespace

TEST_CASE("a broken deadline in the environment does not keep one from asking for help") {
  for (const std::string command : {"train", "sft", "reward-model"})
    for (const char* question : {" --help", " --dump-default"}) {
      const Outcome outcome = run(command + question, kBroken);
      INFO(command << question << "\n" << outcome.text);
      CHECK(outcome.code == 0);
      CHECK_THAT(outcome.text, !ContainsSubstring("TAPER_DEADLINE is"));
    }
  const Outcome outcome = run("train --set Model/Directory=model --print Run/Seed", kBroken);
  INFO(outcome.text);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, !ContainsSubstring("TAPER_DEADLINE"));
}

TEST_CASE("a run refuses a broken deadline, unless it is given one") {
  const Scratch scratch;
  const std::string words = "train --check --set \"Model/Directory=" + scratch / "model" +
                            "\" --set \"Output/Directory=" + scratch / "run" + "\"";
  const Outcome refused = run(words, kBroken);
  INFO(refused.text);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.text, ContainsSubstring("TAPER_DEADLINE is 'tomorrow'"));
  const Outcome given = run(words + " --deadline 1000", kBroken);
  INFO(given.text);
  CHECK_THAT(given.text, !ContainsSubstring("TAPER_DEADLINE is") &&
                             ContainsSubstring("deadline of this job has already passed"));
}
