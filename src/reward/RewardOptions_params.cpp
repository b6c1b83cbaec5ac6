// SPDX-License-Identifier: Apache-2.0
#include "reward/RewardOptions_params.hpp"

namespace taper {
namespace {

// Longer than any job; finite times are counted in milliseconds.
constexpr double kMostSeconds = 86400.0;

void describe_command(param::Section& s, CommandOptions& o) {
  s.list("Command", o.command,
         "Program and arguments of a worker that reads and writes JSON lines");
  s.integer("Workers", o.workers, "Workers on each rank that generates responses").between(1, 4096);
  s.number("Timeout", o.timeout, "Longest time for an answer, in seconds")
      .above(0)
      .at_most(kMostSeconds);
  s.number("Start Timeout", o.start_timeout,
           "Additional seconds for the first answer of a new worker")
      .between(0, kMostSeconds);
  s.integer("Retries", o.retries, "Further attempts for a response without a score")
      .between(0, 1000);
  s.choice("On Error", o.on_error,
           "A response without a score after all attempts: fail: end the job; zero: count the "
           "reward as 0; drop: leave the response out",
           {{"fail", OnError::kFail}, {"zero", OnError::kZero}, {"drop", OnError::kDrop}});
  s.list("Components", o.components, "Names of figures in the answers to record");
}

void describe_adaptive_timeout(param::Section s, AdaptiveTimeoutOptions& o) {
  s.optional(o.on);
  s.number("Factor", o.factor, "Times the longest answer with a score above 0.5 to the same prompt")
      .at_least(1);
  s.number("Least", o.least, "Smallest limit, in seconds").above(0);
  s.number("Most", o.most,
           "Largest limit, in seconds, also of prompts without such an answer; at most Timeout")
      .above(0);
}

// The parameters of one reward: those of its kind.
void describe_reward(param::Section s, RewardOptions& o, const std::string& kind) {
  s.choice("Kind", o.kind, "Kind of reward", named_reward_kinds());
  s.number("Weight", o.weight, "Factor of this reward in the score").between(-1e6, 1e6);
  if (kind == "format") {
    s.list("Markers", o.format.markers,
           "Texts that a response must contain, each once and in this order");
    s.flag("Enclosing", o.format.enclosing,
           "The response must begin with the first marker and end with the last");
  } else if (kind == "length") {
    s.integer("Target", o.length.target, "Tokens without a penalty").at_least(0);
    s.number("Per Token", o.length.per_token, "Penalty for each token above Target").at_least(0);
    s.number("Lowest", o.length.lowest, "Smallest reward").at_most(0);
  } else if (kind == "overlong") {
    s.integer("Limit", o.overlong.limit,
              "Length in tokens at which the penalty equals Factor; 0: Rollout/Max New Tokens")
        .at_least(0);
    s.integer("Buffer", o.overlong.buffer,
              "Number of tokens before Limit over which the penalty grows")
        .at_least(1);
    s.number("Factor", o.overlong.factor, "Penalty at the limit").at_least(0);
  } else if (kind == "repetition") {
    s.integer("N", o.repetition.n, "Tokens of an n-gram").between(1, 1000);
    s.number("Penalty", o.repetition.penalty, "Penalty for a response that only repeats itself")
        .at_least(0);
  } else if (kind == "command") {
    describe_command(s, o.command);
    describe_adaptive_timeout(
        s.section("Adaptive Timeout", "Shorter limits where good answers come sooner"),
        o.adaptive_timeout);
  } else if (kind == "model") {
    s.text("Directory", o.model.directory,
           "Hugging Face directory of a reward model with the policy's tokenizer");
    s.integer("Tensor Parallel", o.model.tp,
              "Ranks per replica of the reward model; 0: as in training")
        .at_least(0);
    s.text("Ranks", o.model.ranks,
           "Ranks that the reward model is on, as 4-7 or 4-7:2x2 (TPxDP); empty: by "
           "Placement/Strategy");
  }
  s.check([&o] { return o.problems(); });
}

}  // namespace

void describe_rewards(param::Section& schema, std::deque<RewardOptions>& rewards) {
  schema.entries(
      "Rewards",
      "Rewards whose weighted sum is the score of a response: one section per reward, under a name "
      "of your choice, with its Kind (doc/rewards.md); empty: Data/Reward Rule",
      [&rewards](param::Section entry, const std::string& name, const auto& peek) {
        rewards.emplace_back().name = name;
        describe_reward(entry, rewards.back(), peek("Kind"));
      });
}

}  // namespace taper
