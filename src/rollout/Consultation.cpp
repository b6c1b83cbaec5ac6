// SPDX-License-Identifier: Apache-2.0
#include "rollout/Consultation.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

// The control word: flags, 16 bits of the epoch, bits of the decision's hash.
constexpr ControlWord kDone = 1, kStop = 2, kPlan = 4, kNews = 8, kIdleWork = 16;
constexpr int kEpochShift = 5, kHashShift = 21;
constexpr ControlWord kOurBits = (ControlWord{1} << kConsultationBits) - 1;
constexpr ControlWord kHashMask = kOurBits >> kHashShift;

// What a leader posts: its replica, and what it has to say on all replicas' affairs.
struct Posted {
  ReplicaSnapshot replica;
  std::int64_t elapsed_ns = 0;   // since the begin of the generation
  std::int64_t switched_ns = 0;  // that the last change of layout took
  std::int64_t wants_stop = 0;   // 1: yes
};
constexpr std::size_t kWords = sizeof(Posted) / sizeof(std::int64_t);
static_assert(std::is_trivially_copyable_v<Posted> && sizeof(Posted) % sizeof(std::int64_t) == 0);

std::vector<int> leaders_of(const Layout& layout) {
  std::vector<int> leaders;
  for (const LayoutGroup& group : layout.groups()) leaders.push_back(group.first);
  return leaders;
}

}  // namespace

Consultation::Consultation(const Ranks& ranks, LayoutPlanner& planner,
                           const ConsultationOptions& options)
    : ranks_(ranks),
      planner_(planner),
      options_(options),
      pace_(options),
      exchange_(ranks.world()),
      layout_(Layout::uniform(1, ranks.chain)) {
  require_no_problems(options.problems());
}

void Consultation::begin(const Layout& layout, RaceNews* race, IdleWork* idle) {
  layout_ = layout;
  race_ = race;
  idle_ = idle;
  word_ = 0;
  done_ = stopped_ = has_news_ = has_idle_work_ = wants_stop_ = false;
  decided_.reset();
  last_change_.reset();
  consultation_ = epoch_ = 0;
  clock_.restart();
  pace_ = ConsultationPace(options_);
  switched_ns_ = 0;
  drafts_ = {};
  records_.clear();
}

bool Consultation::leads() const {
  return layout_.groups()[layout_.replica_of(ranks_.rank())].first == ranks_.rank();
}

void Consultation::read_word(ControlWord word) {
  has_news_ = (word & kNews) != 0;
  has_idle_work_ = (word & kIdleWork) != 0;
  word &= kOurBits;
  if (word == 0) return;
  TAPER_INSIST((word >> kEpochShift & 0xffff) == static_cast<ControlWord>(epoch_ & 0xffff),
               "rank " << ranks_.rank() << " is in epoch " << epoch_
                       << " of the layout, its leader in another");
  done_ = (word & kDone) != 0;
  stopped_ = (word & kStop) != 0;
  if ((word & kPlan) != 0) decided_ = word >> kHashShift;
}

// How long the leader's step took, beside what the planner expects of it. Steps with rows of
// prompts say little of those without.
void Consultation::measure(const StepReport& report) {
  const std::int64_t now = clock_.nanoseconds();
  const int rows = report.decode_rows + report.prefill_rows;
  if (rows > 0) {
    const LayoutGroup& group = layout_.groups()[layout_.replica_of(ranks_.rank())];
    const int sequences = std::max(1, std::min(rows, report.running));
    const std::int64_t expected =
        report.prefill_rows > 0
            ? 0
            : planner_.step_ns(group, {rows, sequences, report.drafted_rows, report.context});
    pace_.measure(now, sequences, expected);
  }
  pace_.resume(now);
}

void Consultation::observe(const StepReport& report, const Engine& engine) {
  read_word(report.control);
  if (!leads()) return;
  word_ = 0;
  measure(report);
  if (done_ || stopped_ || decided_) return;
  const bool idle = report.running == 0 && report.waiting == 0;
  const std::int64_t before = clock_.nanoseconds();
  const bool posted = exchange_.is_posted();
  // Who has nothing else to do consults at once; so does who knows what cannot wait.
  if (!posted && (idle || wants_stop_ || pace_.is_due(before))) post(engine);
  if (exchange_.is_posted() && is_complete(idle)) conclude();
  const std::int64_t now = clock_.nanoseconds();
  if (!idle && (posted || exchange_.is_posted())) pace_.add_cost(now - before);
  pace_.resume(now);
}

// A replica without work waits for the others here, under the eyes of the watchdog, unless it has
// other things to do.
bool Consultation::is_complete(bool idle) {
  if (!idle) return exchange_.test();
  const LibraryWait waiting(ranks_.progress, "the consultation of replicas", layout_.replicas());
  if (idle_ == nullptr) {
    exchange_.wait();
    return true;
  }
  const int tp = layout_.groups()[layout_.replica_of(ranks_.rank())].tp;
  for (; !exchange_.test(); sched_yield())
    if (idle_->is_ready(tp)) {
      word_ = flagged(kIdleWork);
      return false;
    }
  return true;
}

void Consultation::post(const Engine& engine) {
  Posted mine{engine.snapshot(), clock_.nanoseconds(), switched_ns_, wants_stop_ ? 1 : 0};
  mine.replica.speed = pace_.speed(mine.replica.running());
  mine.replica.drafts = drafts_;
  std::vector<std::int64_t> words(kWords + (race_ == nullptr ? 0 : RaceNews::kWords));
  std::memcpy(words.data(), &mine, sizeof mine);
  if (race_ != nullptr) race_->write(std::span(words).subspan(kWords).first<RaceNews::kWords>());
  exchange_.post(leaders_of(layout_), words);
  pace_.restart(clock_.nanoseconds());
}

// All leaders have posted: what they read here is the same, and so is what they conclude.
void Consultation::conclude() {
  Snapshot snapshot{layout_, {}, 0, consultation_, epoch_};
  std::int64_t switched_ns = 0;
  bool stop = false;
  const std::size_t words = exchange_.all().size() / layout_.groups().size();
  for (std::size_t g = 0; g < layout_.groups().size(); ++g) {
    const auto said = exchange_.all().subspan(g * words, words);
    Posted posted;
    std::memcpy(static_cast<void*>(&posted), said.data(), sizeof posted);
    if (race_ != nullptr && layout_.groups()[g].first != ranks_.rank())
      race_->read(said.subspan(kWords).first<RaceNews::kWords>());
    snapshot.replicas.push_back(posted.replica);
    snapshot.elapsed_ns = std::max(snapshot.elapsed_ns, posted.elapsed_ns);
    switched_ns = std::max(switched_ns, posted.switched_ns);
    stop = stop || posted.wants_stop != 0;
  }
  ++consultation_;
  pace_.add_consultation();
  if (last_change_) {
    planner_.switched(*last_change_, switched_ns);
    last_change_.reset();
    switched_ns_ = 0;
  }
  ControlWord flags = race_ != nullptr && race_->has_heard() ? kNews : 0;
  if (snapshot.alive() == 0) {
    flags = kDone;
  } else if (stop) {
    flags = kStop;
  } else {
    decision_ = planner_.decide(snapshot);
    snapshot_ = snapshot;
    pace_.set_wait(decision_->wait_ns);
    if (ranks_.rank() == 0) records_.push_back({snapshot, *decision_});
    if (decision_->act) flags |= kPlan | (decision_->hash & kHashMask) << kHashShift;
  }
  if (flags != 0) word_ = flagged(flags);
}

ControlWord Consultation::flagged(ControlWord flags) const {
  return flags | static_cast<ControlWord>(epoch_ & 0xffff) << kEpochShift;
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
  AgreedChange agreed{
      stay_in(layout_), {layout_, layout_, in.value<std::uint64_t>()}, {layout_, {}, 0, 0, epoch_}};
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
  const std::uint64_t mine = agreed.change.hash & kHashMask;
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
    drafts_ = {};  // those of another layout
  }
  switched_ns_ = applied == Applied::kYes ? switch_clock_.nanoseconds() : 0;
  const std::int64_t now = clock_.nanoseconds();
  pace_.restart(now);
  pace_.resume(now);
  pace_.set_wait(0);
}

}  // namespace taper
