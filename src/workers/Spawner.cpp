// SPDX-License-Identifier: Apache-2.0
#include "workers/Spawner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/Bytes.hpp"
#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Timer.hpp"
#include "workers/detail/SpawnerMessages.hpp"

namespace taper {
namespace {

using detail::SpawnerOrder;
using detail::SpawnerReply;
using detail::StartStep;

std::string reason(int error) {
  return std::strerror(error);
}

[[noreturn]] void throw_not_started(const WorkerCommand& command, const SpawnerReply& reply) {
  switch (reply.failed) {
    case StartStep::kProgram:
      TAPER_FAIL(ExitCode::kBadInput, "the reward worker '"
                                          << join(command.arguments, " ") << "' cannot be started ("
                                          << reason(reply.error)
                                          << "); check the program's name, path and permissions");
    case StartStep::kLog:
      TAPER_FAIL(ExitCode::kBadInput, "the log " << path_text(command.log)
                                                 << " of a reward worker cannot be opened ("
                                                 << reason(reply.error) << ")");
    default:
      TAPER_FAIL(ExitCode::kFailure, "a reward worker cannot be started ("
                                         << reason(reply.error)
                                         << "); check the limits of processes and open files");
  }
}

std::string ending(int status) {
  if (WIFEXITED(status)) return "exited with code " + std::to_string(WEXITSTATUS(status));
  if (WIFSIGNALED(status))
    return "ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
           ::strsignal(WTERMSIG(status)) + ")";
  return "ended";
}

}  // namespace

Spawner::Spawner() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    TAPER_FAIL(ExitCode::kFailure,
               "no socket for the spawner of reward workers (" << reason(errno) << ")");
  socket_ = detail::Handle(ends[0]);
  detail::Handle other(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0)
    TAPER_FAIL(ExitCode::kFailure,
               "the spawner of reward workers cannot be started (" << reason(errno) << ")");
  if (pid_ == 0) {
    socket_.reset();
    detail::serve_as_spawner(std::move(other));
  }
}

Spawner::~Spawner() {
  socket_.reset();
  // The spawner leaves after its grace; a process that is stuck in the kernel must not hold up the
  // job.
  const Timer timer;
  while (::waitpid(pid_, nullptr, WNOHANG) == 0 && timer.seconds() < 5 * kGraceSeconds)
    ::poll(nullptr, 0, 2);  // milliseconds
}

std::string Spawner::ask(const std::string& message, SpawnedWorker* worker) {
  const std::lock_guard lock(mutex_);
  std::vector<detail::Handle> ends;
  std::string reply;
  const bool sent = detail::send_message(socket_.fd(), message);
  const int error = errno;
  if (!sent && error == EMSGSIZE)
    TAPER_FAIL(ExitCode::kBadInput, "the command of a reward worker is too long");
  if (!sent || !detail::receive_message(socket_.fd(), reply, &ends))
    TAPER_FAIL(ExitCode::kFailure,
               "the spawner of reward workers (process "
                   << pid_ << ") is gone (was it killed, for memory perhaps?); the run can be "
                   << "resumed");
  if (worker != nullptr && ends.size() == 2) {
    worker->to = std::move(ends[0]);
    worker->from = std::move(ends[1]);
  }
  return reply;
}

SpawnedWorker Spawner::start(const WorkerCommand& command) {
  SpawnedWorker worker;
  const std::string reply = ask(
      detail::pack({SpawnerOrder::kStart, -1, command.arguments, command.environment, command.log}),
      &worker);
  const auto what = ByteReader(reply).value<SpawnerReply>();
  if (what.failed != StartStep::kNone) throw_not_started(command, what);
  TAPER_INSIST(worker.to.is_open() && worker.from.is_open(), "a reward worker without its streams");
  for (const int fd : {worker.to.fd(), worker.from.fd()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  worker.pid = what.pid;
  return worker;
}

std::string Spawner::stop(pid_t pid, Moment moment) {
  const auto order = moment == Moment::kToLeave ? SpawnerOrder::kStopSoon : SpawnerOrder::kStop;
  const std::string reply = ask(detail::pack({order, pid, {}, {}, ""}), nullptr);
  return ending(ByteReader(reply).value<SpawnerReply>().status);
}

}  // namespace taper
