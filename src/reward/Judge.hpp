// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/MetricValues.hpp"
#include "base/Response.hpp"
#include "data/PromptSource.hpp"
#include "instance/ModelFiles.hpp"
#include "reward/RewardCommands.hpp"
#include "reward/RewardFigures.hpp"
#include "reward/RewardModel.hpp"
#include "reward/RewardOptions.hpp"
#include "rl/ModelCalls.hpp"
#include "session/Ranks.hpp"

namespace taper {

// A response that has just ended, as its rank tells the judge.
struct EndedResponse {
  ResponseId id;
  std::span<const std::int32_t> prompt, response;  // tokens
  FinishReason finish = FinishReason::kEos;
};

// Gives responses their rewards, and their score: the weighted sum of these, with and without those
// that shape. Rules are computed where a response was made; commands are asked as soon as it ends,
// and answer while others are still generated; models judge all responses together when these are
// there.
class Judge {
 public:
  using ModelPlaces = std::map<std::string, ModelPlace>;

  // `spawner` may be null if no reward is a command. The judge refers to all but the rewards.
  // Workers' standard errors go to files in `log_directory`, made for them. `places` are those of
  // models among the rewards by their names; one that is not named is on all ranks. Throws Error if
  // a model cannot judge this policy. Collective over the world.
  Judge(std::vector<RewardOptions> rewards, const ModelFiles& files, const Ranks& ranks,
        Spawner* spawner, std::string log_directory, const RewardModelSetup& setup = {},
        const ModelPlaces& places = {});
  ~Judge();

  // Throws Error with kBadInput if the program of a command is not there, without starting it,
  // or the weights of a model.
  void require_judges() const;
  // What the models will hold on this rank. Not collective.
  void add_memory(MemoryPlan& plan) const;
  // Allocates and loads that. Collective over the ranks of each model, one after the other.
  void load_models(Arena& arena);
  // Starts the workers of commands: on this rank all of them now if it is sure to need them,
  // else as they are needed. Throws Error with kBadInput if they cannot be started.
  using Start = RewardCommands::Start;
  void start_workers(Start start) { commands_.start(start); }

  // What Sample::rewards will hold: the rewards, each followed by the figures that its answers
  // have.
  const std::vector<std::string>& names() const { return names_; }

  // The rule by which answers are taken out of responses: that of the first reward that has one;
  // without any the whole response is the answer.
  RewardRule answer_rule() const;

  // Begins the figures anew: metrics() is of the responses from here on.
  void begin_figures() { figures_.begin(); }
  // The prompts of the responses to come, by their numbers from first_prompt on.
  void begin(std::span<const Prompt> prompts, std::int64_t first_prompt = 0);
  // Tells the workers of a response that has just ended on this rank. Does nothing if no reward
  // is a command.
  void submit(const EndedResponse& ended);
  // A response that was submitted here is not wanted any more: workers are not asked about it if
  // they have not been yet, and what they say is ignored. finish() must not be given it. Nothing
  // happens if it was not submitted. Not collective.
  void cancel(const ResponseId& id);
  // Takes what commands have answered meanwhile, for has_answers(). Not collective.
  void take_answers() { commands_.take_answers(); }
  // Whether all commands have said of a response, submitted here, what they will say; false if one
  // has failed whose failure ends the run. Not collective.
  bool has_answers(const ResponseId& id) const { return commands_.has_answers(id); }
  // Gives one sample, for which has_answers(), rewards and score before finish() is given it.
  // Rewards of models are those that the sample has, else NaN, and no part of the score yet. Not
  // collective.
  void score(Sample& sample);
  // Counts the rewards of models in the score, once all are there. Not collective.
  void count_models(Sample& sample) const;
  // What models among the rewards do with the samples. A sample that has a figure of theirs when
  // finish() is given it keeps that.
  std::vector<ModelCall> model_calls() const;
  // The samples of all ranks with rewards and scores; `mine` are those submitted here and not
  // cancelled, where they stay unless a model judges them. Waits for the workers; if `stop`, which
  // all ranks ask together, says so while they work, or within half a second after a score is found
  // missing that must not be, nothing is returned. `others` work on the samples while models judge
  // them; `record` gets all of these. Throws Error if a reward is missing and must not be, and if a
  // command has scored no response at all. Collective over the world.
  std::optional<SampleSet> finish(std::vector<Sample> mine, const std::function<bool()>& stop,
                                  std::span<const ModelCall> others = {},
                                  CallRecord* record = nullptr);

  // Figures of all responses since begin_figures() by name, "<prefix>/<reward>/mean" and so on; the
  // same on all ranks. None if one rule judges alone, whose reward is the score.
  MetricValues metrics(const std::string& prefix) const { return figures_.metrics(prefix); }

  // What adaptive timeouts have learned, for checkpoints; empty if no reward has one. It only
  // grows, also by evaluations and by iterations that a stop request has put off. The same on all
  // ranks; not collective.
  const Anchors::Table& anchors() const { return commands_.anchors(); }
  void set_anchors(const Anchors::Table& anchors) { commands_.set_anchors(anchors); }

 private:
  // What judges need of a prompt besides its tokens.
  struct PromptFacts {
    std::string truth, source, extra;
  };

  const PromptFacts& facts_of(std::int64_t prompt) const;
  std::string take_text(const Sample& sample);
  ModelCall call_of(const RewardOptions& reward) const;
  void add_model_rewards(SampleSet& samples, std::span<const ModelCall> others, CallRecord* record);

  std::vector<RewardOptions> rewards_;
  const ModelFiles& files_;
  const Ranks& ranks_;
  std::vector<std::string> names_;
  bool reads_texts_ = false;  // to compute rewards on this rank
  RewardCommands commands_;
  std::map<std::string, std::unique_ptr<RewardModel>> models_;  // by the name of the reward
  std::vector<PromptFacts> prompts_;                            // from first_prompt_ on
  std::int64_t first_prompt_ = 0;
  std::map<ResponseId, std::string> texts_;  // that workers were told of, until score() needs them
  RewardFigures figures_;
};

// A spawner of workers if one of the `rewards` of the input is a command, else null: to be made
// before MPI and threads start. Bad input is dealt with later, on all ranks.
std::unique_ptr<Spawner> make_spawner(const std::function<std::vector<RewardOptions>()>& rewards);

}  // namespace taper
