// SPDX-License-Identifier: Apache-2.0
//
// What a rank and its spawner say to each other over a socket that keeps messages apart.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "workers/detail/Handle.hpp"

namespace taper::detail {

enum class SpawnerOrder : char { kStart, kStop, kStopSoon };

struct SpawnerRequest {
  SpawnerOrder order = SpawnerOrder::kStart;
  pid_t pid = -1;                                   // kStop, kStopSoon
  std::vector<std::string> arguments, environment;  // kStart
  std::string log;
};

std::string pack(const SpawnerRequest& request);
SpawnerRequest unpack_request(const std::string& bytes);

// What failed if a worker could not be started.
enum class StartStep : int { kNone, kPipes, kLog, kProgram };

struct SpawnerReply {
  pid_t pid = -1;
  StartStep failed = StartStep::kNone;
  int error = 0;   // errno of what failed
  int status = 0;  // of waitpid(), for a worker that was stopped
};

// False if the other side is gone. Descriptors travel along, if there are any (two of them).
bool send_message(int socket, const std::string& bytes, const std::vector<int>& descriptors = {});
bool receive_message(int socket, std::string& bytes, std::vector<Handle>* descriptors = nullptr);

// The spawner's life, in the child of fork(): serves the socket until the other side closes it,
// ends the workers, and leaves.
[[noreturn]] void serve_as_spawner(Handle socket);

}  // namespace taper::detail
