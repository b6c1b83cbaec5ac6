// SPDX-License-Identifier: Apache-2.0
#include "data/DataOptions_params.hpp"

#include <string>

namespace taper {
namespace {

void describe_chat_template(param::Section& s, std::string& chat_template) {
  s.text("Chat Template", chat_template,
         "Jinja template that turns messages into text: auto (the model's own) or the path of "
         "a file");
}

void describe_shuffle(param::Section& s, bool& shuffle) {
  s.flag("Shuffle", shuffle,
         "Visit the files in a different order in each pass; otherwise in the order of the files");
}

}  // namespace

void describe_data(param::Section& schema, DataOptions& o) {
  auto s = schema.section("Data", "Prompts, and how answers are judged");
  s.text("Task", o.task, "In-tree task to use without a prompt file: mix, sum, gcd or collatz");
  s.list("Prompts", o.prompts,
         "JSONL files of prompts with ground truths; empty: the in-tree task");
  s.list("Weights", o.weights,
         "Share of each of these files in training, in their order; empty: every prompt has the "
         "same share");
  s.text("Evaluation Prompts", o.evaluation_prompts,
         "JSONL file of held-out prompts, for evaluations in runs with prompt files");
  describe_chat_template(s, o.chat_template);
  s.check([&o] { return o.problems(); });
}

void describe_sft_data(param::Section& schema, SftDataOptions& o) {
  auto s = schema.section("Data", "Examples");
  s.list("Files", o.files,
         "JSONL files of examples (chats, or prompts with responses); empty: the in-tree task");
  s.list("Validation Files", o.validation_files, "JSONL files of held-out examples");
  describe_chat_template(s, o.chat_template);
  s.choice("Answers", o.answers, "Which messages of the assistant in a chat the model learns",
           {{"all", SftAnswers::kAll}, {"last", SftAnswers::kLast}});
  describe_shuffle(s, o.shuffle);
  s.choice("Over Long", o.over_long,
           "Examples that are too long: drop: leave them out; cut: cut off their end; stop: refuse "
           "the run",
           {{"drop", OverLong::kDrop}, {"cut", OverLong::kCut}, {"stop", OverLong::kStop}});
  s.integer("Max Length", o.max_length,
            "Longest example in tokens; 0: what a micro-batch and the context hold")
      .at_least(0);
}

void describe_preference_data(param::Section& schema, PreferenceDataOptions& o) {
  auto s = schema.section("Data", "Preference pairs");
  s.list("Files", o.files, "JSONL files of pairs: a prompt with a chosen and a rejected response");
  s.list("Validation Files", o.validation_files, "JSONL files of held-out pairs");
  describe_chat_template(s, o.chat_template);
  describe_shuffle(s, o.shuffle);
  s.choice("Over Long", o.over_long,
           "Pairs that are too long: drop: leave them out; stop: refuse the run",
           {{"drop", OverLong::kDrop}, {"stop", OverLong::kStop}});
  s.integer("Max Length", o.max_length,
            "Longest prompt with response in tokens; 0: what the context holds")
      .at_least(0);
}

}  // namespace taper
