// SPDX-License-Identifier: Apache-2.0
#include "train/EarlyLearning.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/Packing.hpp"
#include "comm/Collectives.hpp"
#include "rl/Experience.hpp"
#include "rl/MicroBatch.hpp"
#include "rollout/GeneratedSample.hpp"

namespace taper {

EarlyLearning::EarlyLearning(const RunOptions& options, const Ranks& ranks,
                             const Placement& placement, Policy& policy, Judge& judge)
    : options_(options),
      ranks_(ranks),
      policy_layout_(placement.policy),
      generation_(placement.generation.ranks()),
      policy_(policy),
      judge_(judge),
      mail_(ranks.world()) {}

void EarlyLearning::begin() {
  incomplete_.clear();
  complete_.clear();
  current_ = {};
  is_over_ = false;
  tokens_ = 0;
  if (policy_.model() != nullptr) policy_.trainer().forget_early();
}

int EarlyLearning::home_of(std::int64_t prompt) const {
  const auto replica = static_cast<int>(prompt % policy_layout_.grid.dp);
  return policy_layout_.first + replica * policy_layout_.grid.tp;
}

void EarlyLearning::add(const Completion& ended) {
  if (mini_batch_of(ended.id.prompt, options_.rollout.prompts, options_.training.mini_batches) > 0)
    return;
  Sample sample = std::move(as_samples({ended}).front());
  judge_.score(sample);
  mail_.send(home_of(ended.id.prompt), packed(sample));
}

// Takes what has arrived. Whether there was anything.
bool EarlyLearning::read_mail() {
  bool has_come = false;
  while (const auto message = mail_.take()) {
    has_come = true;
    if (message->empty()) {
      is_over_ = true;
      continue;
    }
    Sample sample = unpacked<Sample>(*message);
    std::vector<Sample>& samples = incomplete_[sample.id.prompt];
    samples.push_back(std::move(sample));
    if (std::ssize(samples) == options_.rollout.samples)
      complete_.push_back(std::move(incomplete_.extract(samples.front().id.prompt).mapped()));
  }
  return has_come;
}

bool EarlyLearning::is_ready(int tp) {
  if (!is_home() || tp % replica().size() != 0) return false;
  read_mail();
  return has_work();
}

void EarlyLearning::begin_prompt(std::vector<Sample> samples) {
  SampleSet set(std::move(samples));
  prepare_samples(set, options_.experience, 0.0);
  current_.samples = std::move(set.here());
  const auto bundles = policy_.trainer().bundles_of(current_.samples);
  current_.bundles.assign(bundles.begin(), bundles.end());
}

// One bundle.
void EarlyLearning::work() {
  if (policy_.model() == nullptr) return;
  const PhaseScope phase(ranks_.progress, "learn_early");
  if (current_.bundles.empty()) {
    std::vector<Sample> next;
    if (is_home() && !complete_.empty()) {
      next = std::move(complete_.front());
      complete_.pop_front();
    }
    if (!replica().is_null())
      next = unpacked<std::vector<Sample>>(broadcast_string(replica(), packed(next), 0));
    if (next.empty()) return;
    begin_prompt(std::move(next));
  }
  const Range bundle = current_.bundles.front();
  current_.bundles.pop_front();
  policy_.trainer().learn_early(current_.samples, bundle);
  if (!is_home()) return;
  for (int i = bundle.begin; i < bundle.end; ++i)
    tokens_ += std::ssize(current_.samples[i].response);
}

// Until there is something to do, or at least news. The watchdog ends it as it ends a collective
// call, if the ranks that generate have fallen silent.
void EarlyLearning::wait_for_mail() {
  if (read_mail() || has_work() || is_over_) return;
  const LibraryWait wait(ranks_.progress, "a wait for responses", ranks_.size());
  while (!read_mail()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void EarlyLearning::work_until_over() {
  enum Next : std::int32_t { kOver, kWork, kWait };
  std::vector<std::int32_t> next{kWait};
  do {
    if (is_home()) {
      wait_for_mail();
      next.front() = is_over_ ? kOver : has_work() ? kWork : kWait;
    }
    broadcast(replica(), next, 0);  // news for the others, too, whose wait begins anew
    if (next.front() == kWork) work();
  } while (next.front() != kOver);
}

void EarlyLearning::end() {
  if (ranks_.rank() == generation_.first)
    for (int replica = 0; replica < policy_layout_.grid.dp; ++replica)
      if (const int home = home_of(replica); !generation_.has(home)) mail_.send(home, "");
  if (policy_.model() != nullptr && !generation_.has(ranks_.rank())) work_until_over();
  mail_.finish();
  std::vector<std::int64_t> tokens{tokens_};
  all_reduce_sum(ranks_.world(), tokens);
  tokens_ = tokens.front();
}

}  // namespace taper
