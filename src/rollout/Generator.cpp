// SPDX-License-Identifier: Apache-2.0
#include "rollout/Generator.hpp"

#include <algorithm>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "io/InputPath.hpp"
#include "planner/Dealer.hpp"
#include "profile/RunIdentity.hpp"
#include "profile/RunProfile.hpp"

namespace taper {
namespace {

bool fits_model(const ParamTable& table, int tp) {
  return tp <= table.config().heads && tp <= table.mlp_blocks() && tp <= table.vocab_blocks();
}

// Whether every shard of degree tp lies inside one of the smallest degree: not where heads are cut
// below a KV head.
bool nests(const ParamTable& table, int smallest, int tp) {
  return smallest == 1 || tp <= table.config().kv_heads;
}

// The sequences of the groups that the plan changes; ids are numbers in the list.
std::vector<SequenceState> states_of(const SequenceList& list, const LayoutChange& change,
                                     const Plan& plan) {
  const std::vector<bool> changed = changed_groups(change.from, change.to);
  std::vector<SequenceState> states;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (plan.repack || changed[list[i].replica])
      states.push_back({static_cast<std::int64_t>(i), list[i].replica, list[i].computed,
                        list[i].prompt_length, list[i].length - list[i].prompt_length,
                        list[i].limit, list[i].id.prompt});
  return states;
}

// As the confirmation says; all others stay where they are.
std::vector<Destination> destinations_of(const SequenceList& list, const LayoutChange& change,
                                         const Confirmation& confirmation) {
  std::vector<Destination> destinations;
  for (const ListedSequence& s : list)
    destinations.push_back({change.to.replica_of(change.from.groups()[s.replica].first), true});
  for (const SequenceMove& move : confirmation.moves)
    destinations.at(static_cast<std::size_t>(move.id)) = {move.to, move.kv != KvAction::kRecompute};
  return destinations;
}

// Floats of one layer of a block on the rank that has the most KV heads.
std::int64_t largest_block(const ModelFiles& files, int tp) {
  int heads = 0;
  for (int i = 0; i < tp; ++i)
    heads = std::max(heads, ModelShard(files.table, tp, i).kv_heads().size());
  return BlockShape{1, heads, files.config.head_dim}.layer_floats();
}

}  // namespace

std::vector<int> degrees_of_layout(const std::string& text) {
  if (text.empty()) return {};
  std::vector<int> degrees = group_degrees(text).value_or(std::vector<int>{});
  TAPER_VALIDATE(!degrees.empty(),
                 "'" << text << "' is not a layout (expected: " << layout_forms() << ")");
  std::sort(degrees.begin(), degrees.end());
  degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
  return degrees;
}

std::vector<Request> first_requests(const std::vector<Request>& requests, const Layout& layout,
                                    int replica) {
  std::vector<Request> mine;
  Dealer dealer(layout);
  for (const Request& request : requests) {
    int before = 0, here = 0;
    for (const Deal& deal :
         dealer.deal(request.samples, std::ssize(request.prompt), request.max_new_tokens)) {
      if (deal.replica < replica) before += deal.samples;
      if (deal.replica == replica) here = deal.samples;
    }
    if (here == 0 && request.samples > 0) continue;  // the engine refuses the others
    mine.push_back(request.part(before, here));
  }
  return mine;
}

// What it takes to account for a generation that took place.
struct Generator::Reviewer {
  Reviewer(const LatencyProfile& profile, const PlannerOptions& options)
      : machine(profile), degrees(options.degrees), consult_ns(options.consult_ns) {}

  SimulatedMachine machine;  // as profiled
  std::vector<int> degrees;
  std::int64_t consult_ns;
};

Generator::Generator(const GeneratorOptions& options, WeightType type, ModelFiles& files,
                     const Ranks& ranks, MemoryPhase phase)
    : options_(options), type_(type), files_(files), ranks_(ranks), phase_(phase) {
  std::vector<int> degrees = degrees_of_layout(options.layout);
  // The degree that is asked for stays, fit or not: ModelShard says what is wrong with it.
  if (changes() || degrees.empty()) degrees.push_back(options.tp);
  if (changes())
    for (const int tp : ranks.chain.degrees())
      if (tp % options.tp == 0 && fits_model(files.table, tp)) degrees.push_back(tp);
  std::sort(degrees.begin(), degrees.end());
  const EngineNeed need{options.max_positions(), files.valid_ids(), options.names.kv_memory};
  for (const int tp : degrees) {
    if (parallels_.contains(tp)) continue;
    if (tp != degrees.front() && !nests(files.table, degrees.front(), tp)) continue;
    parallels_.emplace(tp, ModelParallel(files.table, ranks.groups.tp_group(tp)));
    layouts_[tp] = {nullptr, &parallels_.at(tp),
                    engine_options(options, need, files.config, parallels_.at(tp))};
  }
  TAPER_INSIST(!layouts_.empty(), "no tensor-parallel degree is left to generate in");
  if (!options.layout.empty()) {
    const Layout first = parse_layout(options.layout, ranks.chain);
    for (const LayoutGroup& group : first.groups())
      TAPER_VALIDATE(layouts_.contains(group.tp),
                     options.names.layout
                         << " " << options.layout << " has a group of " << group.tp
                         << " ranks, which would split a KV head (the model has "
                         << files.config.kv_heads << "; a larger degree is possible only if the "
                         << "smallest degree is 1, here it is " << smallest_degree()
                         << "); choose another layout "
                            "(doc/planner.md#which-layouts-are-possible)");
  }
  // Where the layout may change, a group can take over the sequences of all replicas of the
  // smallest degree that it may be made of: in flight are as many per rank in every layout, and
  // keys and values stay within the memory that the smallest degree needs anyway.
  const std::int64_t kv_layer =
      layouts_.begin()->second.options.kv_blocks * largest_block(files, smallest_degree());
  for (auto& [tp, layout] : layouts_) {
    if (changes()) {
      auto& scheduler = layout.options.scheduler;
      scheduler.max_running *= tp / smallest_degree();
      scheduler.max_step_rows = std::max(scheduler.max_step_rows, scheduler.max_running);
      layout.options.kv_blocks = static_cast<int>(kv_layer / largest_block(files, tp));
    }
    memory_.cover(EngineMemory::of(files.table, *layout.parallel, layout.options));
  }
  planner_ = make_planner();
  consult_ = std::make_unique<Consultation>(ranks, *planner_);
}

Generator::~Generator() = default;

void Generator::add_memory(MemoryPlan& plan) const {
  memory_.add_memory(plan, phase_);
  if (changes()) Reshaper::add_memory(plan, phase_, memory_);
}

void Generator::create(const PackedModel& packed, Arena& arena, ConstFloatMatrix rope_table) {
  for (auto& [tp, layout] : layouts_) {
    views_.emplace(tp, ModelView(packed, parallels_.at(tp).shard()));
    layout.view = &views_.at(tp);
  }
  engine_ = std::make_unique<Engine>(ranks_.exec, layouts_.begin()->second, memory_, arena, phase_,
                                     rope_table);
  if (!changes()) return;
  // Pages that nothing has touched yet would make the first changes of layout several times slower
  // than measured ones.
  arena.populate();
  reshaper_ = std::make_unique<Reshaper>(files_.table, ranks_.chain, ranks_.groups, layouts_,
                                         memory_, arena, phase_);
}

std::shared_ptr<LayoutPlanner> Generator::make_planner() {
  if (!changes() || options_.profile.empty()) {
    const Layout layout = options_.layout.empty() ? Layout::uniform(options_.tp, ranks_.chain)
                                                  : parse_layout(options_.layout, ranks_.chain);
    return std::make_shared<StaticPlanner>(layout);
  }
  PlannerOptions options;
  options.mode = options_.mode;
  options.initial = options_.layout;
  for (const auto& [tp, layout] : layouts_) options.degrees.push_back(tp);
  require_input_file(options_.names.profile, options_.profile,
                     "measure one with taper profile, on as many ranks");
  const LatencyProfile profile = read_matching_profile(
      options_.profile, gather_identity(files_, type_, ranks_), ranks_, options.degrees);
  reviewer_ = std::make_unique<Reviewer>(profile, options);
  return std::make_shared<Planner>(profile, ranks_.chain, options);
}

void Generator::set_planner(std::shared_ptr<LayoutPlanner> planner,
                            const ConsultationOptions& consultation) {
  planner_ = std::move(planner);
  consult_ = std::make_unique<Consultation>(ranks_, *planner_, consultation);
}

Workload Generator::workload(const std::vector<Request>& requests, std::uint64_t iteration) const {
  Workload w;
  w.iteration = static_cast<std::int64_t>(iteration);
  const auto alike = [&](const Request& r) { return r.samples == requests.front().samples; };
  if (!requests.empty() && std::all_of(requests.begin(), requests.end(), alike))
    w.samples = requests.front().samples;
  for (const Request& r : requests) {
    w.sequences += r.samples;
    w.prompt_tokens += static_cast<std::int64_t>(r.prompt.size()) * r.samples;
    w.max_new_tokens = std::max(w.max_new_tokens, r.max_new_tokens);
  }
  const SchedulerOptions& scheduler = layouts_.begin()->second.options.scheduler;
  w.slots_per_rank = std::max(1, scheduler.max_running / smallest_degree());
  w.step_rows = scheduler.max_step_rows;
  w.block_size = scheduler.block_size;
  for (const auto& [tp, layout] : layouts_) w.kv_blocks[tp] = layout.options.kv_blocks;
  return w;
}

void Generator::start(const std::vector<Request>& requests, const SamplingOptions& sampling,
                      const StopOptions& stops, const Layout& layout) {
  const int mine = layout.replica_of(ranks_.rank());
  steps_in_layout_ = 0;
  engine_->rebind(layouts_.at(layout.groups()[mine].tp), mine, {}, {});
  engine_->begin(sampling, stops);
  for (const Request& request : first_requests(requests, layout, mine)) engine_->submit(request);
}

std::vector<Completion> Generator::run(const std::vector<Request>& requests,
                                       const SamplingOptions& sampling, const StopOptions& stops,
                                       const std::function<bool(const Group&)>& stop,
                                       const std::function<void(const Completion&)>& ended) {
  workload_ = workload(requests, sampling.iteration);
  const Timer choice;
  const Layout first = planner_->begin(workload_);
  report_ = std::make_unique<GenerationReport>(GenerationReport{first, first});
  report_->consultation_s = choice.seconds();
  completions_.clear();
  start(requests, sampling, stops, first);
  consult_->begin(first);
  const Timer timer;
  Consultation& consult = *consult_;
  Engine& engine = *engine_;
  for (std::int64_t step = 0; !consult.all_work_done() && !consult.stopped(); ++step) {
    ranks_.progress.set_step(step);
    if (stop && is_time_to_ask() && stop(engine.parallel().group())) consult.request_stop();
    consult.observe(engine.step(consult.control_word()), engine);
    collect(ended);
    if (const auto agreed = consult.agree()) change_layout(*agreed, timer);
  }
  finish_report(timer.seconds());
  stopped_ = consult.stopped();
  return stopped_ ? std::vector<Completion>{} : std::move(completions_);
}

// All ranks meet, price the plan again, and carry it out or leave everything as it is.
void Generator::change_layout(const AgreedChange& agreed, const Timer& timer) {
  const auto& [plan, change, snapshot] = agreed;
  const PhaseScope phase(ranks_.progress, "switch");
  SwitchRecord record{plan, change.from};
  record.at_s = timer.seconds();
  const SequenceList list = reshaper_->meet(change, *engine_);
  record.confirmation = planner_->confirm(plan, snapshot, states_of(list, change, plan));
  record.meeting_s = timer.seconds() - record.at_s;
  ranks_.progress.set_step(1);
  if (record.confirmation.act)
    record.report = reshaper_->apply(change, list,
                                     destinations_of(list, change, record.confirmation), *engine_);
  consult_->close(agreed, record.report.done ? Applied::kYes : Applied::kNo);
  record.seconds = timer.seconds() - record.at_s;
  keep(std::move(record), list);
}

// Every so many steps, counted from the same moment on all ranks of a group.
bool Generator::is_time_to_ask() {
  constexpr int kStepsBetweenQuestions = 16;
  return steps_in_layout_++ % kStepsBetweenQuestions == 0;
}

// The leader speaks for its group. What ends is collected at once: leaders may change.
void Generator::collect(const std::function<void(const Completion&)>& ended) {
  for (Completion& c : engine_->take_completions()) {
    if (engine_->parallel().group().rank() != 0) continue;
    if (ended) ended(c);
    completions_.push_back(std::move(c));
  }
}

void Generator::keep(SwitchRecord record, const SequenceList& list) {
  steps_in_layout_ = 0;
  record.sequences = static_cast<int>(list.size());
  if (ranks_.rank() == 0 && !record.report.problem.empty()) TAPER_INFO(record.report.problem);
  report_->switches.push_back(std::move(record));
}

void Generator::finish_report(double seconds) {
  report_->seconds = seconds;
  report_->last_layout = consult_->layout();
  report_->consultations = consult_->count();
  report_->consultation_s += consult_->seconds();
  report_->decisions = consult_->records();
}

// The account of the last run(), by its true lengths.
void Generator::review(const std::vector<Outcome>& outcomes) {
  std::vector<ReplaySwitch> made;
  for (const SwitchRecord& s : report_->switches)
    if (s.report.done)
      made.push_back({static_cast<std::int64_t>(s.at_s * 1e9), s.plan.layout, s.plan.repack});
  if (!reviewer_ || planner_->scale() == 0) return;
  GenerationReview found =
      taper::review(make_trace(workload_, outcomes), report_->first_layout, made,
                    reviewer_->degrees, ranks_.chain, reviewer_->machine, reviewer_->consult_ns);
  found.predicted_ns = found.replayed_ns * planner_->scale() / 1024;
  report_->review = std::move(found);
}

// Leaders of different moments have seen different things: the state of rank 0, always a leader,
// becomes that of all.
void Generator::learn(const std::vector<Outcome>& outcomes) {
  planner_->load(broadcast_string(ranks_.world(), planner_->save(), 0));
  std::vector<std::int64_t> elapsed{static_cast<std::int64_t>(report_->seconds * 1e9)};
  all_reduce_max(ranks_.world(), elapsed);
  if (ranks_.rank() == 0) review(outcomes);
  planner_->finish(outcomes, elapsed[0]);
}

namespace {

template <class Load>
void with_advice(Load&& load) {
  try {
    load();
  } catch (const Error& error) {
    TAPER_FAIL(error.code(), "the checkpoint cannot be used with Rollout/Mode advise or adaptive ("
                                 << error.what()
                                 << "); continue with Rollout/Mode=static, which samples the same "
                                    "tokens, with the version of Taper that wrote it, or start "
                                    "over with --resume none");
  }
}

}  // namespace

void Generator::load_planner(std::string_view bytes) {
  with_advice([&] { planner_->load(bytes); });
}

void Generator::require_loadable_planner(std::string_view bytes) const {
  with_advice([&] { planner_->require_loadable(bytes); });
}

Sample as_sample(Completion&& c) {
  Sample s;
  s.id = c.id;
  s.prompt = std::move(c.prompt);
  s.response = std::move(c.response);
  s.log_probs = std::move(c.log_probs);
  s.kept_mass = std::move(c.kept_mass);
  s.finish = c.finish;
  s.spans = std::move(c.spans);
  return s;
}

std::vector<Outcome> outcomes_of(const std::vector<SampleSummary>& samples) {
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < samples.size(); ++i)
    outcomes.push_back({static_cast<std::int64_t>(i), samples[i].prompt_tokens,
                        samples[i].response_tokens, samples[i].finish == FinishReason::kAbort});
  return outcomes;
}

}  // namespace taper
