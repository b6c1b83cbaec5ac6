// SPDX-License-Identifier: Apache-2.0
#include "train/EarlyPrompts.hpp"

#include <algorithm>
#include <utility>

namespace taper {

EarlyPrompts::EarlyPrompts(int samples, std::vector<SampleFigure> figures)
    : samples_(samples), figures_(std::move(figures)) {}

void EarlyPrompts::clear() {
  incomplete_.clear();
  complete_.clear();
}

void EarlyPrompts::add(Sample sample) {
  const ResponseId id = sample.id;
  incomplete_[id.prompt][id].sample = std::move(sample);
  move_if_complete(id.prompt);
}

void EarlyPrompts::add(const ResponseId& id, int figure, std::vector<float> values) {
  incomplete_[id.prompt][id].figures[figure] = std::move(values);
  move_if_complete(id.prompt);
}

void EarlyPrompts::move_if_complete(std::int64_t prompt) {
  std::map<ResponseId, Part>& parts = incomplete_.at(prompt);
  const auto is_whole = [&](const auto& part) {
    return part.second.sample && part.second.figures.size() == figures_.size();
  };
  if (std::ssize(parts) < samples_ || !std::all_of(parts.begin(), parts.end(), is_whole)) return;
  std::vector<Sample>& samples = complete_.emplace_back();
  for (auto& [id, part] : parts) {
    for (auto& [figure, values] : part.figures)
      figures_[static_cast<std::size_t>(figure)].set(*part.sample, std::move(values));
    samples.push_back(std::move(*part.sample));
  }
  incomplete_.erase(prompt);
}

std::vector<Sample> EarlyPrompts::take() {
  std::vector<Sample> samples = std::move(complete_.front());
  complete_.pop_front();
  return samples;
}

}  // namespace taper
