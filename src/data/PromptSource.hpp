// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/Fingerprint.hpp"
#include "data/DataOptions.hpp"
#include "data/Order.hpp"
#include "data/Tasks.hpp"
#include "instance/ModelFiles.hpp"

namespace taper {

struct Prompt {
  std::vector<std::int32_t> tokens;
  std::string truth;
  std::string source;      // the task, or data_source of a prompt file
  std::string extra = {};  // extra_info of a prompt file, as JSON text; may be empty
};

// How prompts are read from a file.
struct PromptReading {
  std::string option = "Data/Prompts";  // names the file in errors: a key, or an option
  std::string chat_template = "auto";
  int max_tokens = 0;  // longer prompts are left out, and counted in the log
  // What the error says to do if all are longer.
  std::string too_long_advice = "raise Rollout/Max Prompt Tokens";
};

// The prompts of a file, in its order. Throws Error naming file and line of one that cannot be
// used, or naming the file if none is left.
std::vector<Prompt> read_prompts(const std::string& file, const PromptReading& how,
                                 const ModelFiles& files);

// Adds tokens, truths and all else of the prompts, so that ranks can tell whether they have read
// the same ones.
void add_prompts(Fingerprint& fingerprint, const std::vector<Prompt>& prompts);

// Where held-out prompts come from: a file, or an in-tree task if none is named.
struct HeldOut {
  std::string file, task;
  int count = 0;  // the first prompts of the file, 0: all; or this many items of the task
};

// The same prompts in every evaluation; items of a task do not occur in training. Throws Error as
// read_prompts().
std::vector<Prompt> held_out_prompts(const HeldOut& from, const PromptReading& how,
                                     std::uint64_t seed, const ModelFiles& files);

// The endless stream of training prompts, a pure function of the seed: a position in it is all that
// is needed to resume. Prompt files are read in a new order in each pass over them, and mixed as
// PromptMixture says.
class PromptSource {
 public:
  // Prompts of files with more than max_tokens tokens are left out.
  PromptSource(const DataOptions& options, const ModelFiles& files, int max_tokens,
               std::uint64_t seed);

  // The prompts with these numbers in the stream, counted from 0.
  std::vector<Prompt> training(std::span<const std::int64_t> numbers) const;

  // Adds all prompts that were read from files.
  void add_to(Fingerprint& fingerprint) const;

  // Which prompt of the training files a number of the stream is; there must be some.
  std::int64_t item(std::int64_t number) const {
    return mixture_.at(static_cast<std::uint64_t>(number));
  }
  // The number of prompts in the training files, 0 if there are none.
  std::int64_t training_file_prompts() const { return std::ssize(training_); }

 private:
  const ModelFiles* files_;
  std::string task_;
  std::uint64_t seed_;
  std::vector<Prompt> training_;  // of files
  PromptMixture mixture_;
};

}  // namespace taper
