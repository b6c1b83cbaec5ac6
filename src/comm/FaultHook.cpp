// SPDX-License-Identifier: Apache-2.0
#include "comm/FaultHook.hpp"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/Error.hpp"
#include "base/Log.hpp"

namespace taper {
namespace {

constexpr std::string_view kSlow = "slow";

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::int64_t number(const std::string& text, std::string_view whole) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  TAPER_VALIDATE(error == std::errc() && end == text.data() + text.size() && value >= 0,
                 "TAPER_FAULT=" << whole << " ('" << text << "' is no number)");
  return value;
}

FaultKind kind_of(const std::string& name, std::string_view whole) {
  if (name == "kill") return FaultKind::kKill;
  if (name == "throw") return FaultKind::kThrow;
  if (name == "freeze") return FaultKind::kFreeze;
  if (name == "stray") return FaultKind::kStray;
  if (name == "term") return FaultKind::kTerm;
  if (name.starts_with(kSlow)) return FaultKind::kSlow;
  TAPER_FAIL(ExitCode::kBadInput,
             "TAPER_FAULT=" << whole << " ('" << name
                            << "' is none of kill, throw, freeze, stray, term, slow2)");
}

}  // namespace

std::optional<FaultHook> FaultHook::parse(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const auto parts = parts_of(text);
  TAPER_VALIDATE(parts.size() >= 3 && parts.size() <= 5,
                 "TAPER_FAULT=" << text << " (phase:rank:kind[:iteration[:step]] expected)");
  FaultHook fault;
  fault.phase = parts[0];
  fault.rank = static_cast<int>(number(parts[1], text));
  fault.kind = kind_of(parts[2], text);
  if (fault.kind == FaultKind::kSlow)
    fault.times = static_cast<int>(number(parts[2].substr(kSlow.size()), text));
  if (parts.size() > 3) fault.iteration = number(parts[3], text);
  if (parts.size() > 4) fault.step = number(parts[4], text);
  return fault;
}

std::optional<FaultHook> FaultHook::from_environment() {
  const char* text = std::getenv("TAPER_FAULT");
  return parse(text == nullptr ? "" : text);
}

bool FaultHook::is_due(std::string_view current_phase, std::int64_t current_iteration,
                       std::optional<std::int64_t> now) const {
  return phase == current_phase && rank == log_rank() && step == now &&
         (!iteration || *iteration == current_iteration);
}

void FaultHook::strike() const {
  switch (kind) {
    case FaultKind::kKill:
      ::raise(SIGKILL);
      break;
    case FaultKind::kThrow:
      TAPER_FAIL(ExitCode::kFailure, "a fault on purpose in phase " << phase << " (TAPER_FAULT)");
    case FaultKind::kFreeze:
      ::raise(SIGSTOP);
      break;
    case FaultKind::kTerm:
      ::kill(::getpid(), SIGTERM);
      break;
    case FaultKind::kStray:
    case FaultKind::kSlow:
      break;
  }
}

void FaultHook::slow_down(std::string_view current_phase, std::int64_t current_iteration,
                          std::int64_t since_ns) const {
  if (phase != current_phase || rank != log_rank() || current_iteration < iteration.value_or(0))
    return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  std::this_thread::sleep_for((now - std::chrono::nanoseconds(since_ns)) * (times - 1));
}

}  // namespace taper
