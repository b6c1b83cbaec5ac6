// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/Response.hpp"
#include "workers/Spawner.hpp"
#include "workers/detail/Worker.hpp"

namespace taper {

// What becomes of a response whose worker gave no answer, after all attempts.
enum class OnError { kFail, kZero, kDrop };

// Worker processes that answer lines with lines.
struct CommandOptions {
  std::vector<std::string> command;  // program and arguments
  int workers = 2;                   // on each rank that makes responses
  double timeout = 60.0;             // seconds for an answer
  double start_timeout = 120.0;      // seconds that a new worker's first answer may take more
  int retries = 1;
  OnError on_error = OnError::kFail;
  std::vector<std::string> components;  // of each answer, for the record
};

// What workers are asked: a JSON object, whose "id" is the pool's.
struct WorkerQuestion {
  ResponseId about;
  std::string members;        // of the object, as JSON text without braces; not empty
  double timeout = INFINITY;  // seconds for its answer, if less than CommandOptions::timeout
};

// What a line means as the answer to a question.
struct WorkerAnswer {
  enum class Meaning {
    kFigures,
    kError,    // the worker says that it cannot answer this one
    kNonsense  // no answer to this question: the worker and the pool are out of step
  };
  Meaning meaning = Meaning::kNonsense;
  std::vector<double> figures;
  std::string problem;  // if there are no figures
};

// Reads a line, without its line feed, as the answer to the question `id`. Never throws for what a
// worker wrote. Called by the pool's thread.
using AnswerReader = std::function<WorkerAnswer(std::string_view line, std::int64_t id)>;

// What became of a question.
struct WorkerResult {
  ResponseId about;
  bool is_answered = false;
  std::vector<double> figures;
  double seconds = 0.0;     // that the worker took for the answer
  bool with_start = false;  // the first answer of a worker: its start may be in the seconds
  std::string problem;      // of the last attempt, if there is no answer
};

// What a pool is called, and what its workers find in their environment.
struct WorkerPoolNames {
  std::string parameter;                 // of the run file, for errors: "Rewards/judge"
  std::vector<std::string> environment;  // NAME=value, besides TAPER_WORKER with the number
  std::string log_stem;                  // of the log files, followed by the number of the worker
};

// Attempts that failed and workers that were replaced.
struct PoolCounts {
  std::int64_t errors = 0;     // answers that are none, reported errors, workers that ended
  std::int64_t timeouts = 0;   // no whole answer in time
  std::int64_t cut_short = 0;  // of these, by the question's own timeout
  std::int64_t restarts = 0;   // workers started to replace one
};

// Worker processes of one kind on one rank, each with one question at a time. A thread of its own
// talks to them, so that they work while the rank generates, and time-outs count from the moment
// that a worker has its question. A worker that does not answer in time, ends, or writes anything
// but the answer is ended and replaced; the question goes to another attempt, up to
// CommandOptions::retries of them, unless it was cut short by its own timeout.
class WorkerPool {
 public:
  WorkerPool(WorkerPoolNames names, const CommandOptions& options, AnswerReader reader,
             Spawner& spawner);
  // Gives up what is not answered yet.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Starts all workers now; else each one with its first request. Throws Error with kBadInput if
  // the program cannot be started.
  void start();

  void submit(WorkerQuestion question);
  // Withdraws what was asked about a response: no worker gets it any more, there is no result, and
  // its failures do not count. A worker that is at it is left to it, up to the time-out, because a
  // new one may take longer to start; wait() does not wait for that.
  void cancel(const ResponseId& about);
  // Waits at most so long for all that was submitted and not cancelled: true if it is answered.
  // Throws Error if workers cannot be started any more.
  bool wait(double seconds);
  // What was answered since the last call, in the order in which answers came.
  std::vector<WorkerResult> take();
  // Since the last call.
  PoolCounts take_counts();

 private:
  struct Attempt {
    WorkerQuestion question;
    std::int64_t ticket = 0;  // of the question
    int number = 0;
    std::int64_t id = 0;
  };
  struct Slot {
    detail::Worker worker;
    Attempt attempt;        // while the worker has a request
    bool replaces = false;  // another worker that is gone
  };
  enum class Failure { kError, kTimeout, kCut };

  void run();
  bool serve();
  void assign(Slot& slot);
  void wait_for_workers();
  int poll_timeout() const;
  void look_after(Slot& slot, short from, short to);
  void take_answer(Slot& slot);
  void lose(Slot& slot, Failure failure, const std::string& what, Spawner::Moment moment);
  void fail(Attempt attempt, Failure failure, const std::string& problem);
  void deliver(std::int64_t ticket, WorkerResult result);
  bool is_open(std::int64_t ticket);
  double limit(const Slot& slot) const;
  void wake() const;

  const WorkerPoolNames names_;
  const CommandOptions options_;
  const AnswerReader reader_;
  std::vector<Slot> slots_;
  std::deque<Attempt> waiting_;  // of the thread, as slots_ while it runs
  std::int64_t last_id_ = 0;
  detail::Handle bell_;  // rung for new work and for the end

  std::mutex mutex_;  // of all below
  std::condition_variable answered_;
  std::vector<Attempt> submitted_;
  std::map<std::int64_t, ResponseId> open_;  // by ticket: what is to have a result
  std::int64_t last_ticket_ = 0;
  std::vector<WorkerResult> finished_;
  PoolCounts counts_;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace taper
