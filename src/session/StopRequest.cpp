// SPDX-License-Identifier: Apache-2.0
#include "session/StopRequest.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <vector>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

std::string to_string(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return "";
    case StopReason::kDeadline:
      return "deadline";
    case StopReason::kUser:
      return "SIGUSR1";
    case StopReason::kInterrupt:
      return "SIGINT";
    case StopReason::kTerminate:
      return "SIGTERM";
  }
  return "";
}

double deadline_of_environment() {
  const char* text = std::getenv("TAPER_DEADLINE");
  if (text == nullptr || *text == '\0') return std::numeric_limits<double>::infinity();
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  TAPER_VALIDATE(*end == '\0' && std::isfinite(value) && value > 0,
                 "TAPER_DEADLINE is '" << text
                                       << "' (seconds since 1970 expected); export e.g. "
                                          "TAPER_DEADLINE=$(date -d '+1 hour' +%s)");
  return value;
}

StopRequest::StopRequest() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

StopRequest::~StopRequest() {
  const timespec at_once{};
  // Signals that came have had their effect: they must not end the process once they are unblocked.
  while (sigtimedwait(&signals_, nullptr, &at_once) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// Blocked signals that came stay pending: no handler, no state of our own. The deadline needs some:
// the clock may be set back, and the world must still hear of what a group has stopped for.
StopReason StopRequest::mine() const {
  sigset_t pending;
  sigpending(&pending);
  if (sigismember(&pending, SIGTERM) == 1) return StopReason::kTerminate;
  if (sigismember(&pending, SIGINT) == 1) return StopReason::kInterrupt;
  if (sigismember(&pending, SIGUSR1) == 1) return StopReason::kUser;
  is_over_ = is_over_ || seconds_since_1970() >= deadline_;
  return is_over_ ? StopReason::kDeadline : StopReason::kNone;
}

StopReason StopRequest::agreed(const Group& group) const {
  std::vector<std::int32_t> reason{static_cast<std::int32_t>(mine())};
  all_reduce_max(group, reason);
  return static_cast<StopReason>(reason.front());
}

bool StopAgreement::reached() {
  if (request_ != nullptr && reason_ == StopReason::kNone) reason_ = request_->agreed(*world_);
  return reason_ != StopReason::kNone;
}

bool StopAgreement::is_wanted_in(const Group& group) const {
  return request_ != nullptr && request_->agreed(group) != StopReason::kNone;
}

}  // namespace taper
