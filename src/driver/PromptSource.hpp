// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/Options.hpp"
#include "text/Tasks.hpp"
#include "text/Tokenizer.hpp"

namespace taper {

struct PromptItem {
  std::vector<std::int32_t> tokens;
  std::string truth;
};

// The prompts of an iteration as a pure function of (seed, iteration): nothing but the iteration is needed to resume.
class PromptSource {
 public:
  PromptSource(const DataOptions& options, const Tokenizer& tokenizer, std::uint64_t seed);

  std::vector<PromptItem> training(std::int64_t iteration, int count) const;
  // Held-out prompts, the same in every iteration.
  std::vector<PromptItem> evaluation(int count) const;

 private:
  std::vector<PromptItem> items(std::uint64_t seed, std::uint64_t first, int count) const;

  const Tokenizer* tokenizer_;
  TaskMix mix_;
  std::uint64_t seed_;
};

}  // namespace taper
