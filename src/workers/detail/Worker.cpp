// SPDX-License-Identifier: Apache-2.0
#include "workers/detail/Worker.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

namespace taper::detail {
namespace {

// write() to a pipe that nobody reads, without the signal that would end the process.
ssize_t write_without_signal(int fd, const char* bytes, std::size_t size) {
  sigset_t pipe, before, pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t written = ::write(fd, bytes, size);
  const int error = errno;
  if (written < 0 && error == EPIPE && !was_pending) {
    const timespec at_once{};
    while (sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

bool is_for_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

void Worker::start() {
  process_ = spawner_->start(command_);
  proven_ = false;
}

std::string Worker::stop(Spawner::Moment moment) {
  const pid_t pid = std::exchange(process_.pid, -1);
  process_.to.reset();
  process_.from.reset();
  request_.clear();
  input_.clear();
  written_ = 0;
  has_request_ = false;
  return spawner_->stop(pid, moment);
}

void Worker::give(std::string request) {
  request_ = std::move(request);
  written_ = 0;
  has_request_ = true;
  since_.restart();
}

bool Worker::write() {
  while (wants_to_read()) {
    const ssize_t n =
        write_without_signal(to(), request_.data() + written_, request_.size() - written_);
    if (n < 0) return is_for_later(errno);
    written_ += static_cast<std::size_t>(n);
  }
  return true;
}

Worker::Input Worker::read() {
  std::array<char, 1 << 16> part{};
  for (;;) {
    if (input_.find('\n') != std::string::npos) return Input::kLine;
    if (input_.size() > kLongestLine) return Input::kTooLong;
    const ssize_t n = ::read(from(), part.data(), part.size());
    if (n == 0) return Input::kEnd;
    if (n < 0) return is_for_later(errno) ? Input::kNothing : Input::kEnd;
    input_.append(part.data(), static_cast<std::size_t>(n));
    drop_blank_lines();
  }
}

// Empty lines between answers do no harm.
void Worker::drop_blank_lines() {
  input_.erase(0, input_.find_first_not_of("\r\n"));
}

std::string Worker::take_line() {
  const auto end = input_.find('\n');
  std::string line = input_.substr(0, end);
  if (line.ends_with('\r')) line.pop_back();
  input_.erase(0, end + 1);
  drop_blank_lines();
  request_.clear();
  written_ = 0;
  has_request_ = false;
  proven_ = true;
  return line;
}

}  // namespace taper::detail
