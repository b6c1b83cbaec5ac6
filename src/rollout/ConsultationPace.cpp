// SPDX-License-Identifier: Apache-2.0
#include "rollout/ConsultationPace.hpp"

#include <algorithm>

#include "base/ReplicaSnapshot.hpp"

namespace taper {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kHeadStart = 9;  // see ConsultationOptions: more shares of the first second
constexpr std::int64_t kLongestWait = kSecond;  // that a decision can ask for
// However much it costs: what one rank alone knows, such as a signal to stop, reaches all by then.
constexpr std::int64_t kLongestPause = 10 * kSecond;

}  // namespace

std::vector<std::string> ConsultationOptions::problems() const {
  if (period_ns < 0 || period_steps < 1 || !(largest_share > 0.0))
    return {"a period of consultation must not be negative, its steps and its share positive"};
  return {};
}

bool ConsultationPace::is_due(std::int64_t now) const {
  if (steps_ < options_.period_steps) return false;
  if (now - restarted_ < std::max(std::min(wait_, kLongestWait), options_.period_ns)) return false;
  if (now - restarted_ >= kLongestPause) return true;
  // The next one is expected to cost what those before did on average.
  const std::int64_t next = count_ > 0 ? cost_ / count_ : 0;
  const std::int64_t elapsed = now + kHeadStart * std::min(now, kSecond);
  return static_cast<double>(cost_ + next) <= options_.largest_share * static_cast<double>(elapsed);
}

void ConsultationPace::measure(std::int64_t now, int sequences, std::int64_t expected) {
  ++steps_;
  if (expected <= 0) return;
  if (const int bucket = length_bucket(sequences); bucket != bucket_) {
    bucket_ = bucket;
    measured_ = predicted_ = 0;
  }
  measured_ += now - step_began_;
  predicted_ += expected;
}

std::uint16_t ConsultationPace::speed(int sequences) const {
  if (predicted_ == 0 || length_bucket(sequences) != bucket_) return 0;
  const double ratio = static_cast<double>(measured_) / static_cast<double>(predicted_);
  // 0 would say that nothing was measured.
  return clamped<std::uint16_t>(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kRatioOne * ratio)));
}

void ConsultationPace::restart(std::int64_t now) {
  restarted_ = now;
  steps_ = 0;
  measured_ = predicted_ = 0;
}

}  // namespace taper
