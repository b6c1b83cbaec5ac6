// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/Planner.hpp"

namespace taper {

struct ConsultationOptions {
  // A replica at work consults after so much time and so many steps, not before the last decision
  // asks for it, and so seldom that it costs it at most this share of the time (ten times that in
  // the first second, since short generations could hardly consult otherwise), but at least every
  // ten seconds.
  std::int64_t period_ns = PlannerOptions().consult_ns;
  int period_steps = PlannerOptions().consult_steps;
  double largest_share = 0.001;

  std::vector<std::string> problems() const;
};

// When a leader with work consults the others, and how fast its steps have been meanwhile. It has
// no clock: all times are in ns, and `now` is that since the begin of the generation.
class ConsultationPace {
 public:
  // Options without problems.
  explicit ConsultationPace(const ConsultationOptions& options) : options_(options) {}

  // Whether it is time to consult.
  bool is_due(std::int64_t now) const;

  // A step that began at the last resume() has ended, in which `sequences` decoded; `expected` is
  // what the planner predicted for it, 0 if it is not to be compared.
  void measure(std::int64_t now, int sequences, std::int64_t expected);
  // The next step begins: what went on since the last one is not part of it.
  void resume(std::int64_t now) { step_began_ = now; }
  // So much of the step is nothing that the planner predicts.
  void leave_out(std::int64_t ns) { step_began_ += ns; }
  // Measured / predicted time, in 1/kRatioOne, of the steps since the last restart() or since there
  // are about as many sequences as now (the same length_bucket()); 0 if nothing is known.
  std::uint16_t speed(int sequences) const;

  // Steps and the period count from here: a snapshot was sent, or another layout begins.
  void restart(std::int64_t now);
  // The last decision wants no consultation before so long after the last restart().
  void set_wait(std::int64_t wait) { wait_ = wait; }
  // Time that consulting took from this leader's steps.
  void add_cost(std::int64_t ns) { cost_ += ns; }
  // A consultation in which this leader took part is over.
  void add_consultation() { ++count_; }

  std::int64_t count() const { return count_; }
  std::int64_t cost() const { return cost_; }

 private:
  ConsultationOptions options_;
  std::int64_t restarted_ = 0, wait_ = 0, step_began_ = 0;
  int steps_ = 0;    // since the last restart
  int bucket_ = -1;  // of sequences, in the steps of the next two
  std::int64_t measured_ = 0, predicted_ = 0;
  std::int64_t count_ = 0, cost_ = 0;
};

}  // namespace taper
