// SPDX-License-Identifier: Apache-2.0
#include "data/DataOptions_params.hpp"

namespace taper {

void describe_data(param::Section& schema, DataOptions& o) {
  auto s = schema.section("Data", "Prompts and how answers are judged");
  s.text("Task", o.task, "In-tree task where no prompt file is given: mix, sum, gcd or collatz");
  s.list("Prompts", o.prompts, "JSONL files of prompts with ground truths; none: the in-tree task");
  s.list("Weights", o.weights,
         "Shares of these files in training, in their order; none: each prompt alike");
  s.text("Evaluation Prompts", o.evaluation_prompts,
         "JSONL file of held-out prompts, for evaluations beside a prompt file");
  s.text(
      "Chat Template", o.chat_template,
      "Jinja template that makes text of messages: auto (the model's own) or the path of a file");
  s.check([&o] { return o.problems(); });
}

void describe_sft_data(param::Section& schema, SftDataOptions& o) {
  auto s = schema.section("Data", "Examples");
  s.list("Files", o.files,
         "JSONL files of examples (chats, or prompts with responses); none: the in-tree task");
  s.list("Validation Files", o.validation_files, "JSONL files of held-out examples");
  s.text(
      "Chat Template", o.chat_template,
      "Jinja template that makes text of messages: auto (the model's own) or the path of a file");
  s.choice("Answers", o.answers, "Which messages of the assistant in a chat are learned",
           {{"all", SftAnswers::kAll}, {"last", SftAnswers::kLast}});
  s.flag("Shuffle", o.shuffle,
         "Each pass over the files in an order of its own; else as they stand there");
  s.choice("Over Long", o.over_long,
           "What becomes of longer examples: left out, cut at their end, or the run is refused",
           {{"drop", OverLong::kDrop}, {"cut", OverLong::kCut}, {"stop", OverLong::kStop}});
  s.integer("Max Length", o.max_length,
            "Tokens of an example at most; 0: what a micro-batch and the context hold")
      .at_least(0);
}

void describe_preference_data(param::Section& schema, PreferenceDataOptions& o) {
  auto s = schema.section("Data", "Preference pairs");
  s.list("Files", o.files, "JSONL files of pairs: a prompt with a chosen and a rejected response");
  s.list("Validation Files", o.validation_files, "JSONL files of held-out pairs");
  s.text(
      "Chat Template", o.chat_template,
      "Jinja template that makes text of messages: auto (the model's own) or the path of a file");
  s.flag("Shuffle", o.shuffle,
         "Each pass over the files in an order of its own; else as they stand there");
  s.choice("Over Long", o.over_long,
           "What becomes of a pair with a longer side: left out, or the run is refused",
           {{"drop", OverLong::kDrop}, {"stop", OverLong::kStop}});
  s.integer("Max Length", o.max_length,
            "Tokens of a prompt with a response at most; 0: what the context holds")
      .at_least(0);
}

}  // namespace taper
