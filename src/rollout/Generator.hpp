// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Timer.hpp"
#include "reshape/Reshaper.hpp"
#include "rl/SampleSet.hpp"
#include "rollout/Consultation.hpp"
#include "rollout/GeneratorOptions.hpp"
#include "simulate/Account.hpp"

namespace taper {

// A change of layout that was agreed upon, as this rank saw it.
struct SwitchRecord {
  Plan plan;
  Layout before;
  Confirmation confirmation = {};
  ReshapeReport report = {};
  double at_s = 0;       // since the start of the generation
  double meeting_s = 0;  // until lists and prices were there
  double seconds = 0;    // altogether
  int sequences = 0;
};

// What a generation was, besides its responses.
struct GenerationReport {
  Layout first_layout, last_layout;
  double seconds = 0;
  std::int64_t consultations = 0;                  // of this rank as a leader
  double consultation_s = 0;                       // the choice of the first layout included
  std::vector<ConsultationRecord> decisions = {};  // on rank 0
  std::vector<SwitchRecord> switches = {};
  std::optional<GenerationReview> review = {};  // on rank 0 after learn(), if the planner predicts
};

// Generates responses on all ranks, in layouts that a planner chooses and may change on the way.
// Tokens and log-probs do not depend on what it chooses.
class Generator {
 public:
  // Degrees that the options and the model allow, and how an engine runs at each. Throws Error
  // where not even one sequence fits. Collective over the world: the profile of a planner is
  // compared with all ranks. `phase` is that of its memory.
  Generator(const GeneratorOptions& options, WeightType type, ModelFiles& files, const Ranks& ranks,
            MemoryPhase phase);
  ~Generator();

  // The ranks hold the weights of this degree; the others are views of it.
  int smallest_degree() const { return layouts_.begin()->first; }
  void add_memory(MemoryPlan& plan) const;

  // Starts with the weights of the smallest degree. The packed weights must outlive the generator.
  void create(const PackedModel& packed, Arena& arena, ConstFloatMatrix rope_table);

  // The planner that the options ask for can be replaced, for tests and comparisons.
  const std::shared_ptr<LayoutPlanner>& planner() const { return planner_; }
  void set_planner(std::shared_ptr<LayoutPlanner> planner, const ConsultationOptions& consultation);

  // The responses that ended on this rank while it led its group. `stop` is asked now and then, by
  // all ranks of a group together, and must give them one answer; where any group stops, all do and
  // nothing is returned. `ended` is told of each response as soon as it has ended, on the rank that
  // will return it. Collective over the world.
  std::vector<Completion> run(const std::vector<Request>& requests, const SamplingOptions& sampling,
                              const StopOptions& stops,
                              const std::function<bool(const Group&)>& stop = {},
                              const std::function<void(const Completion&)>& ended = {});
  bool stopped() const { return stopped_; }
  int max_positions() const { return layouts_.begin()->second.options.max_positions; }

  // Tells the planner how long the responses of the last run() became: one outcome per response, in
  // the order of submission, the same on all ranks. Collective over the world.
  void learn(const std::vector<Outcome>& outcomes);

  const GenerationReport& report() const { return *report_; }
  std::int64_t preemptions() const { return engine_->preemptions(); }
  // What the planner has learned, for checkpoints; the same on all ranks after learn().
  std::string save_planner() const { return planner_->save(); }
  // Throws Error if another version has saved it, with what can be done.
  void load_planner(std::string_view bytes);
  // Throws Error if load_planner() would; changes nothing. Not collective.
  void require_loadable_planner(std::string_view bytes) const;

 private:
  struct Reviewer;

  Workload workload(const std::vector<Request>& requests, std::uint64_t iteration) const;
  void start(const std::vector<Request>& requests, const SamplingOptions& sampling,
             const StopOptions& stops, const Layout& layout);
  bool changes() const { return options_.mode != PlannerMode::kStatic; }
  bool is_time_to_ask();
  void collect(const std::function<void(const Completion&)>& ended);
  void change_layout(const AgreedChange& agreed, const Timer& timer);
  void keep(SwitchRecord record, const SequenceList& list);
  void finish_report(double seconds);
  void review(const std::vector<Outcome>& outcomes);
  std::shared_ptr<LayoutPlanner> make_planner();

  GeneratorOptions options_;
  WeightType type_;
  ModelFiles& files_;
  const Ranks& ranks_;
  MemoryPhase phase_;
  std::map<int, ModelParallel> parallels_;  // by degree, as all below
  std::map<int, ModelView> views_;
  std::map<int, EngineLayout> layouts_;
  EngineMemory memory_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Reshaper> reshaper_;
  std::shared_ptr<LayoutPlanner> planner_;
  std::unique_ptr<Reviewer> reviewer_;  // if the options name a profile
  std::unique_ptr<Consultation> consult_;
  std::vector<Completion> completions_;
  Workload workload_;  // of the last run()
  std::unique_ptr<GenerationReport> report_;
  bool stopped_ = false;
  std::int64_t steps_in_layout_ = 0;
};

// A response as a sample without reward.
Sample as_sample(Completion&& completion);

// What Generator::learn() takes: one outcome for each sample, in their order.
std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples);

// The degrees of "2x4" or "4+2+2", ascending; none for an empty text. The divisor chain of a run
// must have them. Throws Error for another text.
std::vector<int> degrees_of_layout(const std::string& text);

// What a replica begins with, as a Dealer (planner/Dealer.hpp) deals it: of each request none, some
// or all of the samples.
std::vector<Request> first_requests(const std::vector<Request>& requests, const Layout& layout,
                                    int replica);

}  // namespace taper
