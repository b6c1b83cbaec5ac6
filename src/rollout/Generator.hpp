// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "base/Timer.hpp"
#include "draft/GuessDrafter.hpp"
#include "reshape/Reshaper.hpp"
#include "results/RolloutFile.hpp"
#include "rollout/Consultation.hpp"
#include "rollout/DraftPace.hpp"
#include "rollout/GenerationReport.hpp"
#include "rollout/GenerationReviewer.hpp"
#include "rollout/GeneratorOptions.hpp"
#include "rollout/LoadedDraftModel.hpp"
#include "rollout/LoadedExits.hpp"
#include "rollout/RaceNews.hpp"
#include "rollout/RolloutLayouts.hpp"

namespace taper {

// Generates responses on all ranks, in layouts that a planner chooses and may change on the way.
// Tokens and log-probs do not depend on what it chooses.
class Generator {
 public:
  // Throws Error as RolloutLayouts does, or if the planner's profile does not fit. Collective
  // over the world: the profile is compared with all ranks. `phase` is that of its memory.
  Generator(const GeneratorOptions& options, WeightType type, ModelFiles& files, const Ranks& ranks,
            MemoryPhase phase);

  const Ranks& ranks() const { return ranks_; }
  // The ranks hold the weights of this degree.
  int smallest_degree() const { return layouts_.smallest_degree(); }
  // What this rank will hold besides the weights of the model. Not collective.
  void add_memory(MemoryPlan& plan) const;

  // Starts with the weights of the smallest degree; `draft` are those of the draft model, or of the
  // heads of the early exits, if they are trained. The packed weights must outlive the generator.
  // Collective over the world.
  void create(const PackedModel& packed, Arena& arena, ConstFloatMatrix rope_table,
              std::span<const PackedModel* const> draft = {});

  // The planner that the options ask for can be replaced, for tests and comparisons.
  const std::shared_ptr<LayoutPlanner>& planner() const { return planner_; }
  void set_planner(std::shared_ptr<LayoutPlanner> planner, const ConsultationOptions& consultation);

  // The responses that ended on this rank while it led its group. `stop` is asked now and then, by
  // all ranks of a group together, and must give them one answer; if any group stops, all do and
  // nothing is returned. `ended` is told of each response as soon as it has ended, on the rank that
  // will return it. In a race, responses that will not be kept are given up on the way: they are
  // returned with kAbort, as long as they are, which depends on time; `ended` is not told.
  // `idle`, if it is not null, is what a replica does that has nothing left to generate.
  // Collective over the world.
  std::vector<Completion> run(const std::vector<Request>& requests, const SamplingOptions& sampling,
                              const StopOptions& stops,
                              const std::function<bool(const Group&)>& stop = {},
                              const std::function<void(const Completion&)>& ended = {},
                              const std::optional<RaceGoal>& race = {}, IdleWork* idle = nullptr);
  bool stopped() const { return stopped_; }
  // What the last run() had of its responses when it was stopped, on the ranks that led their
  // groups; those in progress as if they had ended with kAbort.
  std::vector<Completion> take_interrupted() { return std::exchange(interrupted_, {}); }
  // Responses, whole or not, that the next runs are expected to repeat: with speculation their
  // tokens are drafts. In place of all before; the same on all ranks. Not collective.
  void recall(std::vector<RolloutRecord> responses);
  int max_positions() const { return layouts_.smallest().options.max_positions; }

  // The profile that the options name, which must have the degrees of all layouts. Throws Error if
  // there is none or it does not fit. Collective over the world.
  LatencyProfile read_profile();
  // Those in which generations may run: all of equal groups, or, if the layout does not change, the
  // one that the options give.
  std::vector<Layout> possible_layouts() const;
  // What the planner is told of such requests. Not collective.
  Workload workload(const std::vector<Request>& requests, std::uint64_t iteration) const;

  // Tells the planner how long the responses of the last run() became: one outcome per response, in
  // the order of submission, the same on all ranks. Collective over the world.
  void learn(const std::vector<Outcome>& outcomes);

  // Of the last run(), which there must have been.
  const GenerationReport& report() const {
    TAPER_EXPECT(report_ != nullptr);
    return *report_;
  }
  // Sequences preempted on this rank since create(), which must come first.
  std::int64_t preemptions() const {
    TAPER_EXPECT(engine_ != nullptr);
    return engine_->preemptions();
  }
  // What the planner has learned, for checkpoints; the same on all ranks after learn().
  std::string save_planner() const { return planner_->save(); }
  // Throws Error if another version has saved it. Not collective.
  void load_planner(std::string_view bytes);
  // Throws Error if load_planner() would; changes nothing. Not collective.
  void require_loadable_planner(std::string_view bytes) const;

 private:
  void start(const std::vector<Request>& requests, const SamplingOptions& sampling,
             const StopOptions& stops, const Layout& layout);
  bool is_time_to_ask();
  DraftLimits first_limits() const;
  void restart_drafts();
  StepReport step();
  int max_running() const;
  void follow_drafts(const StepReport& step, std::int64_t ns);
  void learn_drafts();
  void collect(const std::function<void(const Completion&)>& ended);
  // Collective over the group.
  void give_up(const std::function<void(const Completion&)>& ended);
  void change_layout(const AgreedChange& agreed, const Timer& timer);
  void keep(SwitchRecord record, const SequenceList& list);
  void finish_report(double seconds);
  void share_planner();
  std::shared_ptr<LayoutPlanner> make_planner();
  Layout given_layout() const;

  GeneratorOptions options_;
  WeightType type_;
  ModelFiles& files_;
  const Ranks& ranks_;
  MemoryPhase phase_;
  RolloutLayouts layouts_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Reshaper> reshaper_;
  std::unique_ptr<LoadedDraftModel> draft_model_;  // if one is named
  std::unique_ptr<LoadedExits> exits_;             // if some are named
  std::unique_ptr<GuessDrafter> drafter_;          // if there is speculation
  DraftPace draft_pace_;                           // of a leader, if drafts are to pay
  std::shared_ptr<LayoutPlanner> planner_;
  bool is_planner_shared_ = true;                 // whether it knows the same on all ranks
  std::unique_ptr<GenerationReviewer> reviewer_;  // if the planner has a profile
  std::unique_ptr<Consultation> consult_;
  std::optional<RaceNews> race_;  // of the present generation, if it is one
  std::vector<Completion> completions_, interrupted_;
  Workload workload_;  // of the last run()
  std::unique_ptr<GenerationReport> report_;
  bool stopped_ = false;
  int decoding_ = 0;  // sequences that are expected to decode when the next limits hold
  std::int64_t steps_in_layout_ = 0;
};

}  // namespace taper
