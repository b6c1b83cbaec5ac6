// SPDX-License-Identifier: Apache-2.0
#include "comm/Progress.hpp"

#include <unistd.h>

#include <iomanip>
#include <sstream>

#include "base/Timer.hpp"

namespace taper {

Progress::Progress(Faults faults)
    : changed_ns_(now_ns()), faults_(std::move(faults)), working_since_ns_(now_ns()) {}

void Progress::touch() noexcept {
  while (is_abandoned_.load(std::memory_order_relaxed)) ::pause();
  changed_ns_.store(now_ns(), std::memory_order_release);
}

void Progress::set_phase(const char* phase) {
  phase_ = phase;
  touch();
  working_since_ns_ = changed_ns_;
  faults_.pass(phase, iteration_, std::nullopt);
}

void Progress::return_to_phase(const char* phase) noexcept {
  phase_ = phase;
  touch();
  working_since_ns_ = changed_ns_;
}

void Progress::set_iteration(std::int64_t iteration) {
  iteration_ = iteration;
  touch();
}

void Progress::set_step(std::int64_t step) {
  step_.store(step, std::memory_order_relaxed);
  touch();
  faults_.pass(phase_.load(), iteration_, step);
}

void Progress::enter_collective(const char* name, std::uint64_t number, int group_size) {
  faults_.wait_if_slow(phase_.load(), iteration_, working_since_ns_);
  collective_.store(name, std::memory_order_relaxed);
  number_.store(number, std::memory_order_relaxed);
  group_size_.store(group_size, std::memory_order_relaxed);
  touch();  // before the flag: a watchdog must not pair "inside" with the time of an older change
  inside_.store(true, std::memory_order_release);
}

void Progress::leave_collective() {
  inside_.store(false, std::memory_order_release);
  const std::int64_t entered = changed_ns_;
  touch();
  working_since_ns_ = changed_ns_;
  inside_ns_ += working_since_ns_ - entered;
}

Progress::View Progress::read() const {
  View view;
  view.inside_collective = inside_.load(std::memory_order_acquire);
  view.phase = phase_;
  view.iteration = iteration_;
  view.step = step_;
  view.collective = collective_;
  view.number = number_;
  view.group_size = group_size_;
  view.seconds_since_change = static_cast<double>(now_ns() - changed_ns_.load()) * 1e-9;
  return view;
}

void Progress::watch(const void* who, Question question, std::function<void()> abandon) {
  const std::lock_guard lock(watched_mutex_);
  watched_[who] = {std::move(question), std::move(abandon)};
}

void Progress::unwatch(const void* who) {
  const std::lock_guard lock(watched_mutex_);
  watched_.erase(who);
}

std::string Progress::watched_problem(double hang_seconds) const {
  const std::lock_guard lock(watched_mutex_);
  for (const auto& [who, watched] : watched_)
    if (std::string problem = watched.question(hang_seconds); !problem.empty()) return problem;
  return "";
}

void Progress::abandon_watched() {
  is_abandoned_ = true;
  const std::lock_guard lock(watched_mutex_);
  for (const auto& [who, watched] : watched_) watched.abandon();
}

std::string to_string(const Progress::View& view) {
  std::ostringstream text;
  if (*view.phase != '\0') text << "phase " << view.phase << ", ";
  text << "iteration " << view.iteration << ", step " << view.step << ", ";
  if (*view.collective == '\0') {
    text << "no collective so far";
  } else {
    text << (view.inside_collective ? "in " : "after ") << view.collective << " number "
         << view.number << " of a group of " << view.group_size;
  }
  text << " for " << std::fixed << std::setprecision(1) << view.seconds_since_change << " s";
  return text.str();
}

}  // namespace taper
