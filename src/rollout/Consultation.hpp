// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Timer.hpp"
#include "comm/LeaderExchange.hpp"
#include "engine/Engine.hpp"
#include "planner/LayoutPlanner.hpp"
#include "reshape/Meeting.hpp"
#include "rollout/ConsultationPace.hpp"
#include "rollout/RaceNews.hpp"
#include "session/Ranks.hpp"

namespace taper {

// What a replica does when it has nothing left to generate, while others have: pieces of work, each
// collective over the ranks of its group.
struct IdleWork {
  virtual ~IdleWork() = default;
  // Whether there is a piece for a group of `tp` ranks now; asked of its leader.
  virtual bool is_ready(int tp) = 0;
  // Does a piece.
  virtual void work() = 0;
};

// Bits of a control word that a consultation uses, from the lowest on. The others are free.
inline constexpr int kConsultationBits = 44;

// A consultation as rank 0 saw it.
struct ConsultationRecord {
  Snapshot snapshot;
  Decision decision;
};

// A change of layout that the leaders have decided, as all ranks know it.
struct AgreedChange {
  Plan plan;
  LayoutChange change;
  Snapshot snapshot;  // what it was decided on
};

// Whether a change that was agreed upon was also done.
enum class Applied { kNo, kYes };

// How the replicas of a generation agree upon changes of layout, upon its end and upon stopping it
// early, without waiting for each other. One snapshot per replica is under way at a time, gathered
// among the leaders (rank 0 of each group) without blocking. Only a leader notices that it is
// complete, at a step of its own; it asks the planner, which answers alike on all leaders, and
// tells its group by the control word of the next step. A plan closes the epoch: the next snapshot
// is sent after close().
class Consultation {
 public:
  Consultation(const Ranks& ranks, LayoutPlanner& planner, const ConsultationOptions& options = {});

  // Starts a generation in this layout, on all ranks. race: of the generation, if it is one; idle:
  // what this replica does when it has nothing to generate, or null. Both must outlive it.
  void begin(const Layout& layout, RaceNews* race = nullptr, IdleWork* idle = nullptr);

  // What this rank adds to the step; only a leader's word counts.
  ControlWord control_word() const { return word_; }
  // How far the drafts of this rank's group reach, for the next consultations.
  void set_drafts(const DraftShares& drafts) { drafts_ = drafts; }
  // So much of the time of the last step went into making drafts: it says nothing of the machine.
  void leave_out(std::int64_t ns) { pace_.leave_out(ns); }
  // After each step, with its report.
  void observe(const StepReport& report, const Engine& engine);
  // Asks all replicas to stop; may be called on any leader at any time.
  void request_stop() { wants_stop_ = true; }

  // The leader has heard of responses that ended elsewhere, after the same step on all ranks of a
  // group: they call RaceNews::tell().
  bool has_news() const { return has_news_; }
  // The leader has idle work for its group, after the same step on all ranks of it: they call
  // IdleWork::work().
  bool has_idle_work() const { return has_idle_work_; }
  // Both known from snapshots of all replicas, on all ranks of a group after the same step.
  bool all_work_done() const { return done_; }
  bool stopped() const { return stopped_; }

  // The change that the leaders have decided, if any, after the same step on all ranks of a group.
  // Every rank's planner is then in the state of the leaders'. Collective over the world if
  // there is one; replicas that do not know of it yet get to it at their next steps.
  std::optional<AgreedChange> agree();
  // Ends the epoch, in which a change was agreed upon. Every rank.
  void close(const AgreedChange& agreed, Applied applied);

  const Layout& layout() const { return layout_; }
  // Consultations that this rank, as a leader, took part in, and what they cost it.
  std::int64_t count() const { return pace_.count(); }
  double seconds() const { return 1e-9 * static_cast<double>(pace_.cost()); }
  const std::vector<ConsultationRecord>& records() const { return records_; }  // on rank 0

 private:
  bool leads() const;
  void read_word(ControlWord word);
  ControlWord flagged(ControlWord flags) const;  // with the epoch
  void measure(const StepReport& report);
  bool is_complete(bool idle);
  void post(const Engine& engine);
  void conclude();
  std::string describe_decision() const;
  AgreedChange read_decision(std::string_view bytes);

  const Ranks& ranks_;
  LayoutPlanner& planner_;
  ConsultationOptions options_;
  ConsultationPace pace_;  // of a leader
  LeaderExchange exchange_;
  Layout layout_;
  ControlWord word_ = 0;
  bool done_ = false, stopped_ = false, has_news_ = false, has_idle_work_ = false,
       wants_stop_ = false;
  RaceNews* race_ = nullptr;
  IdleWork* idle_ = nullptr;
  std::optional<std::uint64_t> decided_;  // bits of the decision's hash in the word that was read
  std::optional<Snapshot> snapshot_;      // of leaders: of the last consultation,
  std::optional<Decision> decision_;      // and what came of it
  std::int64_t consultation_ = 0, epoch_ = 0;
  // The last change, until all leaders know how long it took.
  std::optional<Plan> last_change_;
  Timer clock_, switch_clock_;  // since the begin of the generation, and of a change
  std::int64_t switched_ns_ = 0;
  DraftShares drafts_;
  std::vector<ConsultationRecord> records_;
};

}  // namespace taper
