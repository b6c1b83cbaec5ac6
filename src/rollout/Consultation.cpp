// SPDX-License-Identifier: Apache-2.0
#include "rollout/Consultation.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

// The control word: flags, 16 bits of the epoch, the rest of the decision's hash.
constexpr ControlWord kDone = 1, kStop = 2, kPlan = 4;
constexpr int kEpochShift = 3, kHashShift = 19;

// What a leader posts: its replica, and what it has to say on all replicas' affairs.
struct Posted {
  ReplicaSnapshot replica;
  std::int64_t elapsed_ns = 0;   // since the begin of the generation
  std::int64_t switched_ns = 0;  // that the last change of layout took
  std::int64_t wants_stop = 0;   // 1: yes
};
constexpr int kWords = sizeof(Posted) / sizeof(std::int64_t);
static_assert(std::is_trivially_copyable_v<Posted> && sizeof(Posted) % sizeof(std::int64_t) == 0);

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
  Posted mine{engine.snapshot(), nanoseconds(clock_.seconds()), nanoseconds(switch_seconds_),
              wants_stop_ ? 1 : 0};
  if (predicted_ns_ > 0)
    mine.replica.speed = clamped<std::uint16_t>(std::max<std::int64_t>(
        1, static_cast<std::int64_t>(1024.0 * static_cast<double>(measured_ns_) /
                                     static_cast<double>(predicted_ns_))));
  std::array<std::int64_t, kWords> words;
  std::memcpy(words.data(), &mine, sizeof mine);
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
    Posted posted;
    std::memcpy(static_cast<void*>(&posted), exchange_.all().data() + g * kWords, sizeof posted);
    snapshot.replicas.push_back(posted.replica);
    snapshot.elapsed_ns = std::max(snapshot.elapsed_ns, posted.elapsed_ns);
    switched_ns = std::max(switched_ns, posted.switched_ns);
    stop = stop || posted.wants_stop != 0;
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

// What the leaders have decided and on what, and the state of the planner, for the other ranks.
std::string Consultation::describe_decision() const {
  std::string bytes;
  ByteWriter out(bytes);
  std::vector<int> degrees;
  for (const LayoutGroup& group : decision_->plan.layout.groups()) degrees.push_back(group.tp);
  out.value(decision_->hash);
  out.value(decision_->plan.repack);
  out.list(degrees);
  out.value(snapshot_->elapsed_ns);
  out.value(snapshot_->consultation);
  out.list(snapshot_->replicas);
  out.text(planner_.save());
  return bytes;
}

AgreedChange Consultation::read_decision(std::string_view bytes) {
  ByteReader in(bytes);
  AgreedChange agreed{{layout_, PlanStart::kNow, 0, false},
                      {layout_, layout_, in.value<std::uint64_t>()},
                      {layout_, {}, 0, 0, epoch_}};
  in.value(agreed.plan.repack);
  std::vector<int> degrees;
  in.list(degrees);
  agreed.plan.layout = agreed.change.to = Layout(degrees, ranks_.chain);
  in.value(agreed.snapshot.elapsed_ns);
  in.value(agreed.snapshot.consultation);
  in.list(agreed.snapshot.replicas);
  const std::string state = in.text();
  if (!leads()) planner_.load(state);
  return agreed;
}

std::optional<AgreedChange> Consultation::agree() {
  if (!decided_) return std::nullopt;
  switch_clock_.restart();
  const AgreedChange agreed = read_decision(broadcast_string(
      ranks_.world(), ranks_.rank() == 0 ? describe_decision() : std::string(), 0));
  consultation_ = agreed.snapshot.consultation + 1;
  const std::uint64_t mine = agreed.change.hash & (~ControlWord{0} >> kHashShift);
  if (mine != *decided_)
    TAPER_FAIL(ExitCode::kFailure, "rank " << ranks_.rank()
                                           << ": its leader has decided otherwise than rank 0 "
                                           << "(clocks and memory of one rank must not enter "
                                           << "decisions: a bug in Taper)");
  return agreed;
}

void Consultation::close(const AgreedChange& agreed, Applied applied) {
  decided_.reset();
  word_ = 0;
  ++epoch_;
  if (applied == Applied::kYes) {
    layout_ = agreed.plan.layout;
    last_change_ = agreed.plan;
  }
  switch_seconds_ = applied == Applied::kYes ? switch_clock_.seconds() : 0.0;
  posted_at_ = step_began_ = clock_.seconds();
  wait_ = 0;
  steps_since_ = 0;
  measured_ns_ = predicted_ns_ = 0;
}

}  // namespace taper
