// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/Timer.hpp"
#include "workers/Spawner.hpp"

namespace taper::detail {

// One worker process and the request that it has. Streams do not block: poll() says when they are
// ready.
class Worker {
 public:
  Worker(Spawner& spawner, WorkerCommand command)
      : spawner_(&spawner), command_(std::move(command)) {}

  bool is_running() const { return process_.pid >= 0; }
  bool has_request() const { return has_request_; }
  // Whether it has answered since it was started.
  bool is_proven() const { return proven_; }
  bool wants_to_read() const { return written_ < request_.size(); }
  int to() const { return process_.to.fd(); }
  int from() const { return process_.from.fd(); }
  const std::string& log() const { return command_.log; }
  double seconds() const { return since_.seconds(); }  // since it was given its request

  // Throws Error if the program cannot be started.
  void start();
  // Ends it and says how it ended.
  std::string stop(Spawner::Moment moment);

  void give(std::string request);
  // Writes what the worker takes now. False if it takes nothing any more.
  bool write();

  enum class Input { kNothing, kLine, kEnd, kTooLong };
  // Reads what there is now; kLine: line() is whole.
  Input read();
  // The answer read, without its line feed; the request is done.
  std::string take_line();
  // Whether it has written anything that was not asked for.
  bool has_more() const { return !input_.empty(); }

  // A line that no answer needs: what a worker writes must not fill the memory.
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;

 private:
  void drop_blank_lines();

  Spawner* spawner_;
  WorkerCommand command_;
  SpawnedWorker process_;
  std::string request_, input_;
  std::size_t written_ = 0;
  bool has_request_ = false, proven_ = false;
  Timer since_;
};

}  // namespace taper::detail
