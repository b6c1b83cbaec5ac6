// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "reward/Protocol.hpp"
#include "reward/RewardOptions.hpp"
#include "reward/Spawner.hpp"
#include "reward/detail/Worker.hpp"

namespace taper {

// What the workers said of one response.
struct Judgement {
  std::int64_t index = 0;  // as in JudgedResponse
  int sample = 0;
  bool is_scored = false;
  double score = 0.0;
  std::vector<double> components;  // in the order of the options
  double seconds = 0.0;            // that the worker took for the answer
  std::string problem;             // of the last attempt, where there is no score
};

// Attempts that failed and workers that were replaced.
struct PoolCounts {
  std::int64_t errors = 0;    // answers that are none, reported errors, workers that ended
  std::int64_t timeouts = 0;  // no whole answer in time
  std::int64_t restarts = 0;  // workers started to replace one
};

// Worker processes of one reward on one rank, each with one request at a time. A thread of its own
// talks to them, so that they work while the rank generates, and time-outs count from the moment
// that a worker has its request. A worker that does not answer in time, ends, or writes anything
// but the answer is ended and replaced; the response goes to another attempt, up to
// CommandOptions::retries of them.
class WorkerPool {
 public:
  // `log_stem` is followed by the number of the worker; `rank` is for the workers' environment.
  WorkerPool(std::string name, const CommandOptions& options, Spawner& spawner,
             const std::string& log_stem, int rank);
  // Gives up what is not judged yet.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Starts all workers now; else each one with its first request. Throws Error with kBadInput where
  // the program cannot be started.
  void start();

  void submit(JudgedResponse response);
  // Waits at most so long for all that was submitted: true where it is judged. Throws Error where
  // workers cannot be started any more.
  bool wait(double seconds);
  // What was judged since the last call, in the order in which answers came.
  std::vector<Judgement> take();
  // Since the last call.
  PoolCounts take_counts();

  const std::string& name() const { return name_; }
  const CommandOptions& options() const { return options_; }

 private:
  struct Attempt {
    JudgedResponse response;
    int number = 0;
    std::int64_t id = 0;
  };
  struct Slot {
    detail::Worker worker;
    Attempt attempt;        // while the worker has a request
    bool replaces = false;  // another worker that is gone
  };
  enum class Failure { kError, kTimeout };

  void run();
  bool serve();
  void assign(Slot& slot);
  void wait_for_workers();
  int poll_timeout() const;
  void look_after(Slot& slot, short from, short to);
  void take_answer(Slot& slot);
  void lose(Slot& slot, Failure failure, const std::string& what, Spawner::Moment moment);
  void fail(Attempt attempt, Failure failure, const std::string& problem);
  void deliver(const Attempt& attempt, Judgement judgement);
  double limit(const Slot& slot) const;
  void wake() const;

  const std::string name_;
  const CommandOptions options_;
  std::vector<Slot> slots_;
  std::deque<Attempt> waiting_;  // of the thread, as slots_ while it runs
  std::int64_t last_id_ = 0;
  detail::Handle bell_;  // rung for new work and for the end

  std::mutex mutex_;  // of all below
  std::condition_variable judged_;
  std::vector<JudgedResponse> submitted_;
  std::vector<Judgement> finished_;
  PoolCounts counts_;
  std::int64_t unfinished_ = 0;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace taper
