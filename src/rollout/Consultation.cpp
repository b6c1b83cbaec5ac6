// SPDX-License-Identifier: Apache-2.0
#include "rollout/Consultation.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

// The control word: flags, 16 bits of the epoch, the rest of the decision's hash.
constexpr ControlWord kDone = 1, kStop = 2, kPlan = 4;
constexpr int kEpochShift = 3, kHashShift = 19;

// What a leader posts: its snapshot and three integers of all replicas' affairs.
constexpr int kSnapshotWords = sizeof(ReplicaSnapshot) / sizeof(std::int64_t);
constexpr int kElapsed = kSnapshotWords, kSwitch = kElapsed + 1, kFlags = kElapsed + 2;
constexpr int kWords = kElapsed + 3;

constexpr double kHeadStart = 9;    // see ConsultationOptions: more shares of the first second
constexpr double kLongestWait = 1;  // seconds: a stop that one rank asks for reaches all by then

std::int64_t nanoseconds(double seconds) {
  return static_cast<std::int64_t>(seconds * 1e9);
}

std::vector<int> leaders_of(const Layout& layout) {
  std::vector<int> leaders;
  for (const LayoutGroup& group : layout.groups()) leaders.push_back(group.first);
  return leaders;
}

}  // namespace

std::vector<std::string> ConsultationOptions::problems() const {
  if (period_ns < 0 || period_steps < 1 || !(largest_share > 0.0))
    return {"a period of consultation must not be negative, its steps and its share positive"};
  return {};
}

Consultation::Consultation(const Ranks& ranks, LayoutPlanner& planner,
                           const ConsultationOptions& options)
    : ranks_(ranks),
      planner_(planner),
      options_(options),
      exchange_(ranks.world(), kWords),
      layout_(Layout::uniform(1, ranks.chain)) {
  for (const auto& problem : options.problems()) TAPER_FAIL(ExitCode::kBadInput, problem);
}

void Consultation::begin(const Layout& layout) {
  layout_ = layout;
  word_ = 0;
  done_ = stopped_ = wants_stop_ = false;
  decided_.reset();
  last_change_.reset();
  consultation_ = epoch_ = 0;
  clock_.restart();
  posted_at_ = wait_ = step_began_ = switch_seconds_ = 0;
  steps_since_ = 0;
  measured_ns_ = predicted_ns_ = 0;
  count_ = 0;
  seconds_ = 0;
  records_.clear();
}

bool Consultation::leads() const {
  return layout_.groups()[layout_.replica_of(ranks_.rank())].first == ranks_.rank();
}

void Consultation::read_word(ControlWord word) {
  if (word == 0) return;
  TAPER_INSIST((word >> kEpochShift & 0xffff) == static_cast<ControlWord>(epoch_ & 0xffff),
               "rank " << ranks_.rank() << " is in epoch " << epoch_
                       << " of the layout, its leader in another");
  done_ = (word & kDone) != 0;
  stopped_ = (word & kStop) != 0;
  if ((word & kPlan) != 0) decided_ = word >> kHashShift;
}

// How long the leader's steps take, beside what the planner expects of them.
void Consultation::measure(const StepReport& report) {
  const double now = clock_.seconds();
  const int rows = report.decode_rows + report.prefill_rows;
  if (rows > 0) {
    ++steps_since_;
    const LayoutGroup& group = layout_.groups()[layout_.replica_of(ranks_.rank())];
    const std::int64_t expected =
        planner_.step_ns(group, rows, std::max(1, std::min(rows, report.running)), report.context);
    if (expected > 0) {
      measured_ns_ += nanoseconds(now - step_began_);
      predicted_ns_ += expected;
    }
  }
  step_began_ = now;
}

bool Consultation::is_due(bool idle) const {
  if (idle || wants_stop_) return true;
  const double now = clock_.seconds();
  if (steps_since_ < options_.period_steps ||
      now - posted_at_ <
          std::max(std::min(wait_, kLongestWait), static_cast<double>(options_.period_ns) * 1e-9))
    return false;
  const double own = count_ > 0 ? seconds_ / static_cast<double>(count_) : 0.0;
  return seconds_ + own <= options_.largest_share * (now + kHeadStart * std::min(now, 1.0));
}

void Consultation::observe(const StepReport& report, const Engine& engine) {
  read_word(report.control);
  if (!leads()) return;
  word_ = 0;
  measure(report);
  if (done_ || stopped_ || decided_) return;
  const bool idle = report.running == 0 && report.waiting == 0;
  const double before = clock_.seconds();
  const bool posted = exchange_.is_posted();
  if (!posted && is_due(idle)) post(engine);
  if (exchange_.is_posted() && is_complete(idle)) conclude();
  const double now = clock_.seconds();
  if (!idle && (posted || exchange_.is_posted())) seconds_ += now - before;
  step_began_ = now;
}

// A replica without work waits for the others here, under the eyes of the watchdog.
bool Consultation::is_complete(bool idle) {
  if (!idle) return exchange_.test();
  const LibraryWait waiting(ranks_.progress, "the consultation of replicas", layout_.replicas());
  exchange_.wait();
  return true;
}

void Consultation::post(const Engine& engine) {
  ReplicaSnapshot mine = engine.snapshot();
  if (predicted_ns_ > 0)
    mine.speed = clamped<std::uint16_t>(std::max<std::int64_t>(
        1, static_cast<std::int64_t>(1024.0 * static_cast<double>(measured_ns_) /
                                     static_cast<double>(predicted_ns_))));
  std::vector<std::int64_t> words(kWords, 0);
  std::memcpy(words.data(), &mine, sizeof mine);
  words[kElapsed] = nanoseconds(clock_.seconds());
  words[kSwitch] = nanoseconds(switch_seconds_);
  words[kFlags] = wants_stop_ ? 1 : 0;
  exchange_.post(leaders_of(layout_), words);
  posted_at_ = clock_.seconds();
  steps_since_ = 0;
  measured_ns_ = predicted_ns_ = 0;
}

// All leaders have posted: what they read here is the same, and so is what they conclude.
void Consultation::conclude() {
  Snapshot snapshot{layout_, {}, 0, consultation_, epoch_};
  std::int64_t switched_ns = 0;
  bool stop = false;
  for (int g = 0; g < layout_.replicas(); ++g) {
    const std::int64_t* words = exchange_.all().data() + g * kWords;
    std::memcpy(static_cast<void*>(&snapshot.replicas.emplace_back()), words,
                sizeof(ReplicaSnapshot));
    snapshot.elapsed_ns = std::max(snapshot.elapsed_ns, words[kElapsed]);
    switched_ns = std::max(switched_ns, words[kSwitch]);
    stop = stop || words[kFlags] != 0;
  }
  ++consultation_;
  ++count_;
  if (last_change_) {
    planner_.switched(*last_change_, switched_ns);
    last_change_.reset();
    switch_seconds_ = 0;
  }
  word_ = static_cast<ControlWord>(epoch_ & 0xffff) << kEpochShift;
  if (snapshot.alive() == 0) {
    word_ |= kDone;
  } else if (stop) {
    word_ |= kStop;
  } else {
    decision_ = planner_.decide(snapshot);
    snapshot_ = snapshot;
    wait_ = 1e-9 * static_cast<double>(decision_->wait_ns);
    if (ranks_.rank() == 0) records_.push_back({snapshot, *decision_});
    if (decision_->act)
      word_ |= kPlan | (decision_->hash & (~ControlWord{0} >> kHashShift)) << kHashShift;
    else
      word_ = 0;
  }
}

// The plan with what it was decided on and the state of the planner, for ranks that are no leaders.
std::vector<std::int64_t> Consultation::describe_plan() const {
  const Plan& plan = decision_->plan;
  std::vector<std::int64_t> words{static_cast<std::int64_t>(decision_->hash),
                                  snapshot_->elapsed_ns,
                                  snapshot_->consultation,
                                  plan.repack ? 1 : 0,
                                  plan.layout.replicas(),
                                  layout_.replicas()};
  for (const LayoutGroup& group : plan.layout.groups()) words.push_back(group.tp);
  for (const ReplicaSnapshot& replica : snapshot_->replicas) {
    words.resize(words.size() + kSnapshotWords);
    std::memcpy(words.data() + words.size() - kSnapshotWords, &replica, sizeof replica);
  }
  const auto state = planner_.save();
  words.insert(words.end(), state.begin(), state.end());
  return words;
}

Plan Consultation::read_plan(std::span<const std::int64_t> words) {
  TAPER_INSIST(words.size() >= 6, "a plan of " << words.size() << " words");
  hash_ = static_cast<std::uint64_t>(words[0]);
  Snapshot snapshot{layout_, {}, words[1], words[2], epoch_};
  const std::size_t groups = static_cast<std::size_t>(words[4]),
                    replicas = static_cast<std::size_t>(words[5]);
  std::vector<int> degrees;
  for (std::size_t i = 0; i < groups; ++i) degrees.push_back(static_cast<int>(words[6 + i]));
  const std::int64_t* at = words.data() + 6 + groups;
  for (std::size_t i = 0; i < replicas; ++i, at += kSnapshotWords)
    std::memcpy(static_cast<void*>(&snapshot.replicas.emplace_back()), at, sizeof(ReplicaSnapshot));
  snapshot_ = std::move(snapshot);
  consultation_ = words[2] + 1;
  if (!leads()) planner_.load({at, words.data() + words.size()});
  return {Layout(degrees, ranks_.chain), PlanStart::kNow, 0, words[3] != 0};
}

std::optional<Plan> Consultation::plan() {
  if (!decided_) return std::nullopt;
  switch_clock_.restart();
  std::vector<std::int64_t> words;
  if (ranks_.rank() == 0) words = describe_plan();
  broadcast_vector(ranks_.world(), words, 0);
  Plan plan = read_plan(words);
  const std::uint64_t mine = hash_ & (~ControlWord{0} >> kHashShift);
  if (mine != *decided_)
    TAPER_FAIL(ExitCode::kFailure, "rank " << ranks_.rank()
                                           << ": its leader has decided otherwise than rank 0 "
                                           << "(clocks and memory of one rank must not enter "
                                           << "decisions: a bug in Taper)");
  return plan;
}

void Consultation::close(const Plan& plan, bool done) {
  decided_.reset();
  word_ = 0;
  ++epoch_;
  if (done) {
    layout_ = plan.layout;
    last_change_ = plan;
  }
  switch_seconds_ = done ? switch_clock_.seconds() : 0.0;
  posted_at_ = step_began_ = clock_.seconds();
  wait_ = 0;
  steps_since_ = 0;
  measured_ns_ = predicted_ns_ = 0;
}

}  // namespace taper
