// SPDX-License-Identifier: Apache-2.0
#include "workers/WorkerPool.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"

namespace taper {

using detail::Worker;

WorkerPool::WorkerPool(WorkerPoolNames names, const CommandOptions& options, AnswerReader reader,
                       Spawner& spawner)
    : names_(std::move(names)),
      options_(options),
      reader_(std::move(reader)),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TAPER_VALIDATE(bell_.is_open(), "no event descriptor for the workers of "
                                      << names_.parameter << " (" << std::strerror(errno)
                                      << "); raise the limit of open files (ulimit -n)");
  for (int i = 0; i < options.workers; ++i) {
    const std::string number = std::to_string(i);
    WorkerCommand command{options.command, names_.environment, names_.log_stem + number + ".log"};
    command.environment.push_back("TAPER_WORKER=" + number);
    slots_.push_back({Worker(spawner, std::move(command)), {}, false});
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void WorkerPool::start() {
  TAPER_INSIST(!thread_.joinable(), "workers are started twice");
  for (Slot& slot : slots_) slot.worker.start();
}

void WorkerPool::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell_.fd(), &one, sizeof one);
}

void WorkerPool::submit(WorkerQuestion question) {
  {
    const std::lock_guard lock(mutex_);
    open_[++last_ticket_] = question.about;
    submitted_.push_back({std::move(question), last_ticket_, 0, 0});
  }
  if (thread_.joinable())
    wake();
  else
    thread_ = std::thread([this] { run(); });
}

// What the thread has of it stays there, without an open ticket: no worker gets it, no result is
// kept.
void WorkerPool::cancel(const ResponseId& about) {
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [&](const auto& entry) { return entry.second == about; });
  std::erase_if(finished_, [&](const WorkerResult& result) { return result.about == about; });
  if (open_.empty()) answered_.notify_all();
}

bool WorkerPool::is_open(std::int64_t ticket) {
  const std::lock_guard lock(mutex_);
  return open_.contains(ticket);
}

bool WorkerPool::wait(double seconds) {
  std::unique_lock lock(mutex_);
  answered_.wait_for(lock, std::chrono::duration<double>(seconds),
                     [this] { return open_.empty() || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  return open_.empty();
}

std::vector<WorkerResult> WorkerPool::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

PoolCounts WorkerPool::take_counts() {
  const std::lock_guard lock(mutex_);
  return std::exchange(counts_, {});
}

void WorkerPool::run() {
  try {
    while (serve()) wait_for_workers();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    answered_.notify_all();
  }
}

// Takes over what was submitted, and gives it to those that are free. False at the end.
bool WorkerPool::serve() {
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return false;
    for (Attempt& attempt : submitted_) waiting_.push_back(std::move(attempt));
    submitted_.clear();
  }
  for (Slot& slot : slots_)
    while (!waiting_.empty() && !slot.worker.has_request()) assign(slot);
  return true;
}

// Gives a worker the next attempt, unless that was cancelled.
void WorkerPool::assign(Slot& slot) {
  Attempt attempt = std::move(waiting_.front());
  waiting_.pop_front();
  if (!is_open(attempt.ticket)) return;
  if (!slot.worker.is_running()) {
    slot.worker.start();
    if (slot.replaces) {
      const std::lock_guard lock(mutex_);
      ++counts_.restarts;
    }
  }
  slot.attempt = std::move(attempt);
  slot.attempt.id = ++last_id_;
  slot.worker.give("{\"id\":" + std::to_string(last_id_) + "," + slot.attempt.question.members +
                   "}\n");
  if (!slot.worker.write())
    lose(slot, Failure::kError, "takes no requests", Spawner::Moment::kToLeave);
}

double WorkerPool::limit(const Slot& slot) const {
  return std::min(options_.timeout, slot.attempt.question.timeout) +
         (slot.worker.is_proven() ? 0.0 : options_.start_timeout);
}

// Milliseconds until the next time-out; -1 if nothing can time out.
int WorkerPool::poll_timeout() const {
  double next = INFINITY;
  for (const Slot& slot : slots_)
    if (slot.worker.has_request()) next = std::min(next, limit(slot) - slot.worker.seconds());
  if (std::isinf(next)) return -1;
  return static_cast<int>(std::clamp(next * 1e3 + 1.0, 0.0, 1e8));
}

void WorkerPool::wait_for_workers() {
  std::vector<pollfd> fds{{bell_.fd(), POLLIN, 0}};
  for (const Slot& slot : slots_) {
    fds.push_back({slot.worker.from(), POLLIN, 0});  // a negative one is passed over
    fds.push_back({slot.worker.wants_to_read() ? slot.worker.to() : -1, POLLOUT, 0});
  }
  if (::poll(fds.data(), fds.size(), poll_timeout()) < 0 && errno != EINTR)
    TAPER_FAIL(ExitCode::kFailure, "waiting for the workers of " << names_.parameter << " failed ("
                                                                 << std::strerror(errno) << ")");
  std::uint64_t rings = 0;
  [[maybe_unused]] const auto read = ::read(bell_.fd(), &rings, sizeof rings);
  for (std::size_t i = 0; i < slots_.size(); ++i)
    look_after(slots_[i], fds[2 * i + 1].revents, fds[2 * i + 2].revents);
}

void WorkerPool::look_after(Slot& slot, short from, short to) {
  Worker& worker = slot.worker;
  if (!worker.is_running()) return;
  if (to != 0 && !worker.write())
    return lose(slot, Failure::kError, "takes no requests", Spawner::Moment::kToLeave);
  if (from != 0) {
    switch (worker.read()) {
      case Worker::Input::kNothing:
        break;
      case Worker::Input::kLine:
        return take_answer(slot);
      case Worker::Input::kEnd:
        return lose(slot, Failure::kError,
                    worker.has_more() ? "closed its output within a line" : "closed its output",
                    Spawner::Moment::kToLeave);
      case Worker::Input::kTooLong:
        return lose(slot, Failure::kError,
                    "wrote a line of more than " + format_bytes(Worker::kLongestLine),
                    Spawner::Moment::kNone);
    }
  }
  if (!worker.has_request() || worker.seconds() <= limit(slot)) return;
  const bool is_cut = slot.attempt.question.timeout < options_.timeout;
  lose(slot, is_cut ? Failure::kCut : Failure::kTimeout,
       "did not answer within " + format_text("%g", limit(slot)) + " s" +
           (is_cut ? ", the limit for its prompt" : ""),
       Spawner::Moment::kNone);
}

void WorkerPool::take_answer(Slot& slot) {
  Worker& worker = slot.worker;
  if (!worker.has_request())
    return lose(slot, Failure::kError, "wrote a line without a request", Spawner::Moment::kNone);
  const double seconds = worker.seconds();
  const bool with_start = !worker.is_proven();
  const Attempt attempt = slot.attempt;
  const WorkerAnswer answer = reader_(worker.take_line(), attempt.id);
  switch (answer.meaning) {
    case WorkerAnswer::Meaning::kNonsense:
      lose(slot, Failure::kError, answer.problem, Spawner::Moment::kNone);
      return fail(attempt, Failure::kError, answer.problem + "; see " + path_text(worker.log()));
    case WorkerAnswer::Meaning::kError:
      fail(attempt, Failure::kError, answer.problem);
      break;
    case WorkerAnswer::Meaning::kFigures:
      deliver(attempt.ticket,
              {attempt.question.about, true, answer.figures, seconds, with_start, ""});
      break;
  }
  // Whatever stands after the answer would be taken for the next one.
  if (worker.has_more())
    lose(slot, Failure::kError, "wrote more than one line", Spawner::Moment::kNone);
}

// Ends a worker that is of no use any more, and the attempt that it was at.
void WorkerPool::lose(Slot& slot, Failure failure, const std::string& what,
                      Spawner::Moment moment) {
  const bool had_request = slot.worker.has_request();
  const std::string log = path_text(slot.worker.log());
  const std::string ending = slot.worker.stop(moment);
  slot.replaces = true;
  if (!had_request) return;
  std::string problem = "the worker " + what;
  if (moment == Spawner::Moment::kToLeave) problem += " (it " + ending + ")";
  fail(std::move(slot.attempt), failure, problem + "; see " + log);
}

void WorkerPool::fail(Attempt attempt, Failure failure, const std::string& problem) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_.contains(attempt.ticket)) return;
    ++(failure == Failure::kError ? counts_.errors : counts_.timeouts);
    if (failure == Failure::kCut) ++counts_.cut_short;
  }
  // At once, so that a response for which all attempts fail is known as soon as it can be. A retry
  // is for workers that fail by accident. What was cut took longer than answers to its
  // prompt do: the next attempt would most likely be cut, too, and cost the start of one more
  // worker.
  if (failure != Failure::kCut && attempt.number < options_.retries) {
    ++attempt.number;
    waiting_.push_front(std::move(attempt));
    return;
  }
  deliver(attempt.ticket, {attempt.question.about, false, {}, 0.0, false, problem});
}

void WorkerPool::deliver(std::int64_t ticket, WorkerResult result) {
  const std::lock_guard lock(mutex_);
  if (open_.erase(ticket) == 0) return;
  finished_.push_back(std::move(result));
  if (open_.empty()) answered_.notify_all();
}

}  // namespace taper
