// SPDX-License-Identifier: Apache-2.0
#include "rollout/Generator.hpp"

#include <algorithm>
#include <bit>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "io/InputPath.hpp"
#include "profile/ProfileFile.hpp"
#include "profile/RunIdentity.hpp"
#include "rollout/GatheredResponses.hpp"
#include "rollout/Requests.hpp"

namespace taper {
namespace {

// The sequences of the groups that the plan changes; ids are numbers in the list.
std::vector<SequenceState> states_of(const SequenceList& list, const LayoutChange& change,
                                     const Plan& plan) {
  const std::vector<bool> changed = changed_groups(change.from, change.to);
  std::vector<SequenceState> states;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (plan.repack == Repack::kYes || changed[list[i].replica])
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

}  // namespace

Generator::Generator(const GeneratorOptions& options, WeightType type, ModelFiles& files,
                     const Ranks& ranks, MemoryPhase phase)
    : options_(options),
      type_(type),
      files_(files),
      ranks_(ranks),
      phase_(phase),
      layouts_(options, files, ranks) {
  if (options.speculation.has_draft_model())
    draft_model_ = std::make_unique<LoadedDraftModel>(options, files, layouts_, ranks);
  if (options.speculation.has_exits())
    exits_ = std::make_unique<LoadedExits>(options, files, layouts_, ranks);
  planner_ = make_planner();
  consult_ = std::make_unique<Consultation>(ranks, *planner_);
}

void Generator::add_memory(MemoryPlan& plan) const {
  layouts_.memory().add_memory(plan, phase_);
  if (draft_model_) draft_model_->add_memory(plan, type_, phase_);
  if (exits_) exits_->add_memory(plan, type_, phase_);
  if (options_.may_change_layout())
    Reshaper::add_memory(plan, phase_, layouts_.memory(), ranks_.groups);
}

void Generator::create(const PackedModel& packed, Arena& arena, ConstFloatMatrix rope_table,
                       std::span<const PackedModel* const> draft) {
  layouts_.set_weights(packed);
  engine_ = std::make_unique<Engine>(ranks_.exec, layouts_.smallest(), layouts_.memory(), arena,
                                     phase_, rope_table);
  if (options_.speculation.is_on()) {
    drafter_ = std::make_unique<GuessDrafter>(
        options_.speculation.draft_length,
        static_cast<std::int64_t>(options_.speculation.index_mb * 1024 * 1024));
    if (options_.may_change_layout()) drafter_->explore();
    engine_->set_drafter(drafter_.get());
  }
  if (draft_model_) {
    draft_model_->load(type_, arena, phase_, draft.empty() ? nullptr : draft.front());
    drafter_->set_model(&draft_model_->model());
  }
  if (exits_) drafter_->set_model(&exits_->load(type_, arena, phase_, draft, *engine_));
  if (!options_.may_change_layout()) return;
  // Pages that nothing has touched yet would make the first changes of layout several times slower
  // than measured ones.
  arena.populate();
  reshaper_ = std::make_unique<Reshaper>(files_.table, ranks_.chain, ranks_.groups,
                                         layouts_.by_degree(), layouts_.memory(), arena, phase_);
}

std::shared_ptr<LayoutPlanner> Generator::make_planner() {
  if (!options_.may_change_layout() || options_.profile.empty())
    return std::make_shared<StaticPlanner>(given_layout());
  PlannerOptions options;
  options.mode = options_.mode;
  options.initial = options_.layout;
  options.degrees = layouts_.degrees();
  options.drafts = options_.speculation.is_on();
  const LatencyProfile profile = read_profile();
  reviewer_ = std::make_unique<GenerationReviewer>(profile, ranks_.chain, options);
  return std::make_shared<Planner>(profile, ranks_.chain, options);
}

LatencyProfile Generator::read_profile() {
  require_input_file(options_.names.profile, options_.profile,
                     "measure one with taper profile, on as many ranks");
  return read_matching_profile(options_.profile, gather_identity(files_, type_, ranks_), ranks_,
                               layouts_.degrees());
}

Layout Generator::given_layout() const {
  return options_.layout.empty() ? Layout::uniform(options_.tp, ranks_.chain)
                                 : parse_layout(options_.layout, ranks_.chain);
}

std::vector<Layout> Generator::possible_layouts() const {
  if (!options_.may_change_layout()) return {given_layout()};
  std::vector<Layout> layouts;
  for (const int tp : layouts_.degrees()) layouts.push_back(Layout::uniform(tp, ranks_.chain));
  return layouts;
}

void Generator::set_planner(std::shared_ptr<LayoutPlanner> planner,
                            const ConsultationOptions& consultation) {
  planner_ = std::move(planner);
  is_planner_shared_ = false;  // others may have used it
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
  const SchedulerOptions& scheduler = layouts_.smallest().options.scheduler;
  w.slots_per_rank = std::max(1, scheduler.max_running / smallest_degree());
  w.step_rows = scheduler.max_step_rows;
  w.block_size = scheduler.block_size;
  for (const auto& [tp, layout] : layouts_.by_degree()) w.kv_blocks[tp] = layout.options.kv_blocks;
  return w;
}

void Generator::start(const std::vector<Request>& requests, const SamplingOptions& sampling,
                      const StopOptions& stops, const Layout& layout) {
  const int mine = layout.replica_of(ranks_.rank());
  steps_in_layout_ = 0;
  engine_->rebind(layouts_.at(layout.groups()[mine].tp), mine, {}, {});
  engine_->begin(sampling, stops);
  int sequences = 0;
  for (const Request& request : first_requests(requests, layout, mine)) {
    engine_->submit(request);
    sequences += request.samples;
  }
  if (!drafter_) return;
  const int tp = layout.groups()[mine].tp;
  decoding_ = std::min(sequences, max_running());
  if (draft_model_) draft_model_->bind(tp);
  drafter_->begin(sampling, engine_->parallel().group(), first_limits(),
                  race_ ? WaitsFor::kKept : WaitsFor::kAll, stops.ids);
  const auto known =
      std::ranges::count_if(requests, [&](const Request& r) { return drafter_->knows(r.prompt); });
  draft_pace_.begin(tp, {.is_greedy = sampling.temperature == 0.0f,
                         .knows_prompts = 2 * known > std::ssize(requests)});
}

std::vector<Completion> Generator::run(const std::vector<Request>& requests,
                                       const SamplingOptions& sampling, const StopOptions& stops,
                                       const std::function<bool(const Group&)>& stop,
                                       const std::function<void(const Completion&)>& ended,
                                       const std::optional<RaceGoal>& race, IdleWork* idle) {
  workload_ = workload(requests, sampling.iteration);
  if (race)
    workload_.surplus = {static_cast<int>(std::ssize(requests)) - race->groups,
                         workload_.samples - race->samples};
  // Also if nothing was learned from the last generation, as in evaluations: all choose alike.
  if (options_.may_change_layout()) share_planner();
  is_planner_shared_ = false;
  const Timer choice;
  const Layout first = planner_->begin(workload_);
  report_ = std::make_unique<GenerationReport>(GenerationReport{first, first});
  report_->consultation_s = choice.seconds();
  completions_.clear();
  race_.reset();
  if (race) race_.emplace(*race);
  start(requests, sampling, stops, first);
  consult_->begin(first, race_ ? &*race_ : nullptr, idle);
  const Timer timer;
  Consultation& consult = *consult_;
  Engine& engine = *engine_;
  for (std::int64_t step = 0; !consult.all_work_done() && !consult.stopped(); ++step) {
    ranks_.progress.set_step(step);
    if (stop && is_time_to_ask() && stop(engine.parallel().group())) consult.request_stop();
    const StepReport report = this->step();
    collect(ended);
    consult.observe(report, engine);
    if (race_) give_up(ended);
    if (consult.has_idle_work()) idle->work();
    if (const auto agreed = consult.agree()) change_layout(*agreed, timer);
  }
  finish_report(timer.seconds());
  stopped_ = consult.stopped();
  if (stopped_) {
    if (engine.parallel().group().rank() == 0)
      for (Completion& c : engine.unfinished()) completions_.push_back(std::move(c));
    interrupted_ = std::exchange(completions_, {});
    return {};
  }
  if (drafter_) learn_drafts();
  return std::move(completions_);
}

void Generator::recall(std::vector<RolloutRecord> responses) {
  if (!drafter_) return;
  drafter_->recalled().clear();
  for (RolloutRecord& r : responses) drafter_->recalled().add(r.id, std::move(r.tokens));
}

// All ranks meet, price the plan again, and carry it out or leave everything as it is.
void Generator::change_layout(const AgreedChange& agreed, const Timer& timer) {
  const auto& [plan, change, snapshot] = agreed;
  const PhaseScope phase(ranks_.progress, "switch");
  SwitchRecord record{plan, change.from};
  record.at_s = timer.seconds();
  if (race_) race_->share(ranks_.world(), engine_->parallel().group().rank() == 0);
  const SequenceList list = reshaper_->meet(change, *engine_);
  record.confirmation = planner_->confirm(plan, snapshot, states_of(list, change, plan));
  record.meeting_s = timer.seconds() - record.at_s;
  ranks_.progress.set_step(1);
  if (record.confirmation.act) {
    record.report = reshaper_->apply(change, list,
                                     destinations_of(list, change, record.confirmation), *engine_);
    if (drafter_ && record.report.done) restart_drafts();
  }
  consult_->close(agreed, record.report.done ? Applied::kYes : Applied::kNo);
  record.seconds = timer.seconds() - record.at_s;
  keep(std::move(record), list);
}

// Until a leader says more. Leaders of different groups may have said different things.
DraftLimits Generator::first_limits() const {
  return options_.speculation.mode == SpeculationMode::kAuto ? DraftLimits::nothing()
                                                             : DraftLimits{};
}

void Generator::restart_drafts() {
  const Group& group = engine_->parallel().group();
  if (draft_model_) draft_model_->bind(group.size());
  drafter_->restart(group, first_limits());
  draft_pace_.restart(group.size());
}

static_assert(kConsultationBits + DraftLimits::kBits <= 64);

// The leader's word has what the consultation says and, above it, which guesses pay.
StepReport Generator::step() {
  ControlWord word = consult_->control_word();
  if (!drafter_) return engine_->step(word);
  if (options_.speculation.mode == SpeculationMode::kAuto)
    word |= draft_pace_.limits(decoding_).pack() << kConsultationBits;
  const Timer timer;
  const StepReport report = engine_->step(word);
  follow_drafts(report, timer.nanoseconds());
  return report;
}

// Sequences in flight, at most, in the present layout.
int Generator::max_running() const {
  return layouts_.at(engine_->parallel().group().size()).options.scheduler.max_running;
}

// Every rank of a group hears its leader, which counts and measures for all of them.
void Generator::follow_drafts(const StepReport& step, std::int64_t ns) {
  // While prompts are read, sequences come that will decode by the time the next limits hold.
  decoding_ =
      step.prefill_rows > 0 ? std::min(step.running + step.waiting, max_running()) : step.running;
  const DraftLimits limits = drafter_->limits();
  drafter_->set_limits(DraftLimits::unpack(step.control >> kConsultationBits));
  if (engine_->parallel().group().rank() != 0) return;
  if (step.prefill_rows > 0 || step.decode_rows == 0) return;
  const ModelRounds& model = drafter_->model_rounds();
  report_->speculation.add(step, ns, model.all_ns());
  consult_->leave_out(model.all_ns() + drafter_->look_ns() + drafter_->reading_ns());
  if (drafter_->is_recalling()) return;
  draft_pace_.measure({.limits = limits,
                       .sequences = step.decode_rows,
                       .drafted = step.drafted_rows,
                       .accepted = drafter_->accepted_value(),
                       .expected = drafter_->expected_value(),
                       .ns = ns,
                       .look_ns = drafter_->look_ns(),
                       .model = model,
                       .reading_ns = drafter_->reading_ns()});
  DraftShares shares = drafter_->reach();
  shares.model = report_->speculation.batches[length_bucket(step.decode_rows)].model_share();
  consult_->set_drafts(shares);
}

// All ranks get the figures, and the drafter the responses, of all replicas.
void Generator::learn_drafts() {
  DraftCounts counts = drafter_->finish();
  report_->speculation.sources = counts.sources;
  Endings endings;
  for (const Completion& c : completions_) endings.count(std::ssize(c.response), c.finish);
  auto words = std::bit_cast<SpeculationFigures::Words>(report_->speculation);
  std::array tokens{tokens_of(completions_)};
  // In one message: generations may be short.
  const std::array<std::span<std::int64_t>, 4> parts{counts.acceptance.counts(), endings.counts(),
                                                     words, tokens};
  std::vector<std::int64_t> sums;
  for (const auto& part : parts) sums.insert(sums.end(), part.begin(), part.end());
  all_reduce_sum(ranks_.world(), sums);
  std::size_t at = 0;
  for (const auto& part : parts)
    for (std::int64_t& value : part) value = sums[at++];
  report_->speculation = std::bit_cast<SpeculationFigures>(words);
  drafter_->learn(
      gather_responses(ranks_.world(), completions_, {.all = tokens[0], .room = drafter_->room()}),
      counts, endings);
}

// Every so many steps, counted from the same moment on all ranks of a group.
bool Generator::is_time_to_ask() {
  constexpr int kStepsBetweenQuestions = 16;
  return steps_in_layout_++ % kStepsBetweenQuestions == 0;
}

// The leader speaks for its group. What ends is collected at once: leaders may change.
void Generator::collect(const std::function<void(const Completion&)>& ended) {
  for (Completion& c : engine_->take_completions()) {
    const bool is_whole = c.finish != FinishReason::kAbort;
    if (race_ && is_whole) race_->ended(c.id, static_cast<int>(c.response.size()));
    if (engine_->parallel().group().rank() != 0) continue;
    if (ended && is_whole) ended(c);
    completions_.push_back(std::move(c));
  }
}

// What will not be kept, as far as the ranks of this group know.
void Generator::give_up(const std::function<void(const Completion&)>& ended) {
  if (consult_->has_news()) race_->tell(engine_->parallel().group());
  const Race& race = race_->race();
  engine_->abort([&](const ResponseId& id, int length) { return length >= race.bound(id.prompt); });
  collect(ended);
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

// Leaders of different moments have seen different things: the state of rank 0, always a leader,
// becomes that of all.
void Generator::share_planner() {
  if (is_planner_shared_) return;
  planner_->load(broadcast_string(ranks_.world(), planner_->save(), 0));
  is_planner_shared_ = true;
}

void Generator::learn(const std::vector<Outcome>& outcomes) {
  share_planner();
  std::vector<std::int64_t> elapsed{static_cast<std::int64_t>(report_->seconds * 1e9)};
  all_reduce_max(ranks_.world(), elapsed);
  if (ranks_.rank() == 0 && reviewer_ && planner_->scale() != 0)
    report_->review = reviewer_->review(*report_, workload_, outcomes, planner_->scale());
  planner_->finish(outcomes, elapsed[0]);
}

void Generator::load_planner(std::string_view bytes) {
  planner_->load(bytes);
}

void Generator::require_loadable_planner(std::string_view bytes) const {
  planner_->require_loadable(bytes);
}

}  // namespace taper
