// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/Model.hpp"
#include "driver/Options.hpp"
#include "text/Tasks.hpp"

namespace taper {

struct Prompt {
  std::vector<std::int32_t> tokens;
  std::string truth;
  std::string source;      // the task, or data_source of a prompt file
  std::string extra = {};  // extra_info of a prompt file, as JSON text; may be empty
};

// The prompts of an iteration as a pure function of (seed, iteration): nothing but the iteration is
// needed to resume. Prompt files are read in a new order in each pass over them.
class PromptSource {
 public:
  // Prompts of files with more than max_tokens tokens are left out.
  PromptSource(const DataOptions& options, const ModelFiles& files, int max_tokens,
               std::uint64_t seed);

  std::vector<Prompt> training(std::int64_t iteration, int count) const;
  // Held-out prompts, the same in every iteration: of the in-tree task, or the first ones of the
  // evaluation file. Throws Error where there is a prompt file but no evaluation file.
  std::vector<Prompt> evaluation(int count) const;

  // Those of the training file, 0 where there is none.
  std::int64_t training_file_prompts() const { return std::ssize(training_); }

 private:
  std::vector<Prompt> items(std::uint64_t seed, std::uint64_t first, int count) const;
  std::vector<Prompt> read(const DataOptions& options, const std::string& file,
                           int max_tokens) const;

  const ModelFiles* files_;
  TaskMix mix_;
  std::uint64_t seed_;
  bool from_file_;
  std::vector<Prompt> training_, evaluation_;  // of files
};

}  // namespace taper
