// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace taper {

// Why there is no in-tree task of that name, the value of `key`; empty if there is one.
std::vector<std::string> task_problems(const std::string& task,
                                       const std::string& key = "Data/Task");

struct DataOptions {
  std::string task = "mix";          // in-tree task, used if there is no prompt file
  std::vector<std::string> prompts;  // JSONL
  std::vector<double> weights;       // shares of the files in training; none: all prompts alike
  // JSONL, held out; needed for evaluations if there is a prompt file.
  std::string evaluation_prompts;
  std::string chat_template = "auto";  // or a file, ChatTemplate.hpp

  std::vector<std::string> problems() const;
};

// Which of the assistant's messages in a chat are learned.
enum class SftAnswers { kAll, kLast };
// What becomes of an example that is longer than a micro-batch or the context.
enum class OverLong { kDrop, kCut, kStop };

// Examples of users, and how they are learned.
struct SftDataOptions {
  std::vector<std::string> files;             // JSONL; none: the in-tree task
  std::vector<std::string> validation_files;  // JSONL, held out
  std::string chat_template = "auto";         // or a file, ChatTemplate.hpp
  SftAnswers answers = SftAnswers::kAll;
  bool shuffle = true;  // each pass in an order of its own; else as in the files
  OverLong over_long = OverLong::kDrop;
  int max_length = 0;  // tokens of an example; 0: what a micro-batch and the context hold
};

// Pairs of responses of which one was preferred.
struct PreferenceDataOptions {
  std::vector<std::string> files, validation_files;  // JSONL; the latter held out
  std::string chat_template = "auto";                // or a file, ChatTemplate.hpp
  bool shuffle = true;                               // as SftDataOptions
  OverLong over_long = OverLong::kDrop;              // never kCut: the end of a response counts
  int max_length = 0;  // tokens of a prompt with a response; 0: what the context holds
};

}  // namespace taper
