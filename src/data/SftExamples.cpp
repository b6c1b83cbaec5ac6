// SPDX-License-Identifier: Apache-2.0
#include "data/SftExamples.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "data/PromptEncoder.hpp"
#include "io/InputPath.hpp"

namespace taper {
namespace {

RenderedChat render(const ChatTemplate& chat, const SftItem& item, const std::string& where) {
  try {
    return chat.render_with_answers(item.chat);
  } catch (const Error& error) {
    TAPER_FAIL(error.code(), where << ": " << error.what());
  }
}

// Messages of the assistant before `message`.
std::size_t answers_before(const SftItem& item, std::size_t message) {
  return static_cast<std::size_t>(std::count_if(
      item.chat.messages.begin(), item.chat.messages.begin() + static_cast<std::ptrdiff_t>(message),
      [](const ChatMessage& m) { return m.role == "assistant"; }));
}

// Keeps what fits into `limit` tokens; it may be that nothing to learn is left.
void cut(TokenExample& example, int limit) {
  example.tokens.resize(static_cast<std::size_t>(limit));
  for (Range& answer : example.answers) answer.end = std::min(answer.end, limit);
  std::erase_if(example.answers, [](const Range& answer) { return answer.end <= answer.begin; });
}

// Logs what the limit did to a file.
void report_long(const std::string& file, int dropped, int cut, int all, int limit) {
  const auto say = [&](int count, const char* what) {
    if (count > 0)
      TAPER_INFO(path_text(file) << ": " << count << " of " << all << " examples " << what
                                 << " (longer than " << limit << " tokens)");
  };
  say(dropped, "are left out");
  say(cut, "are cut at their end");
}

constexpr const char* kTooLong =
    "raise Training/Max Tokens (or Data/Max Length) within the model's context, or set Data/Over "
    "Long";

// Appends the examples of one file.
void read_file(const std::string& file, const SftDataOptions& data, SftEncoder& encoder, int limit,
               std::vector<TokenExample>& examples) {
  int dropped = 0, shortened = 0, all = 0;
  for (const SftItem& item : read_sft_data(file)) {
    const std::string where = line_text(file, item.line);
    TokenExample example = encoder.encode(item, where);
    ++all;
    const bool is_long = example.length() > limit;
    TAPER_VALIDATE(!is_long || data.over_long != OverLong::kStop,
                   where << ": the example has " << example.length() << " tokens (" << limit
                         << " at most); " << kTooLong << " to drop or cut");
    if (is_long && data.over_long == OverLong::kCut) cut(example, limit);
    if ((is_long && data.over_long == OverLong::kDrop) || example.answers.empty()) {
      ++dropped;
      continue;
    }
    shortened += is_long;
    examples.push_back(std::move(example));
  }
  report_long(file, dropped, shortened, all, limit);
  TAPER_VALIDATE(dropped < all, path_text(file) << ": all examples are longer than " << limit
                                                << " tokens; " << kTooLong << " to cut");
}

// A prompt and all of its response.
TokenExample pair_example(std::vector<std::int32_t> prompt,
                          const std::vector<std::int32_t>& response) {
  TokenExample example{std::move(prompt), {}};
  const int begin = example.length();
  example.tokens.insert(example.tokens.end(), response.begin(), response.end());
  example.answers = {{begin, example.length()}};
  return example;
}

}  // namespace

int TokenExample::targets() const {
  int count = 0;
  for (const Range& answer : answers) count += answer.size();
  return count;
}

const ChatTemplate& SftEncoder::chat_template() {
  if (!template_) template_ = ChatTemplate::of_model(files_->directory, chat_template_);
  return *template_;
}

TokenExample SftEncoder::encode_pair(const std::string& prompt, const std::string& response) const {
  const auto ids = files_->tokenizer().encode(prompt, AddSpecial::kYes);
  const auto answer = files_->tokenizer().encode(response, AddSpecial::kNo);
  std::vector<std::int32_t> whole(answer.begin(), answer.end());
  whole.push_back(files_->config.eos_ids.front());
  return pair_example({ids.begin(), ids.end()}, whole);
}

// The chat is encoded as a whole. To find the tokens where an answer begins and ends, the text
// before these places is encoded as well: they are where both lists of tokens begin to differ. A
// token across such a place belongs to the text after it.
TokenExample SftEncoder::encode_chat(const SftItem& item, const std::string& where) {
  const RenderedChat chat = render(chat_template(), item, where);
  const auto encode = [&](std::size_t bytes) {
    return files_->tokenizer().encode(std::string_view(chat.text).substr(0, bytes),
                                      AddSpecial::kNo);
  };
  const std::vector<int> ids = encode(chat.text.size());
  const auto tokens_before = [&](std::size_t byte) {
    const std::vector<int> before = encode(byte);
    return static_cast<int>(
        std::mismatch(before.begin(), before.end(), ids.begin(), ids.end()).first - before.begin());
  };
  std::size_t first = answers_before(item, item.first_answer);
  if (answers_ == SftAnswers::kLast) first = chat.answers.size() - 1;
  TokenExample example;
  for (std::size_t i = first; i < chat.answers.size(); ++i) {
    const Range answer{std::max(1, tokens_before(chat.answers[i].begin)),
                       tokens_before(chat.answers[i].end)};
    if (!answer.empty()) example.answers.push_back(answer);
  }
  // Nothing that follows the last answer has an effect on the loss.
  const int end = example.answers.empty() ? 0 : example.answers.back().end;
  example.tokens.assign(ids.begin(), ids.begin() + end);
  return example;
}

TokenExample SftEncoder::encode(const SftItem& item, const std::string& where) {
  TokenExample example;
  if (item.form == PromptForm::kText) {
    example = encode_pair(item.prompt, item.response);
    TAPER_VALIDATE(example.answers.front().begin > 0,
                   where << ": the prompt has no tokens (a model needs at least one); give the "
                            "prompt a text, or remove the line");
  } else if (item.form == PromptForm::kMessages) {
    example = encode_chat(item, where);
  } else {
    example = pair_example({item.prompt_tokens.begin(), item.prompt_tokens.end()},
                           {item.response_tokens.begin(), item.response_tokens.end()});
  }
  require_known_ids(example.tokens, *files_, where);
  TAPER_VALIDATE(!example.answers.empty(),
                 where << ": the assistant's answer has no tokens (there is nothing to learn); "
                          "give it a text, or remove the line");
  return example;
}

std::vector<TokenExample> read_examples(const std::string& option,
                                        const std::vector<std::string>& files,
                                        const SftDataOptions& data, const ModelFiles& model,
                                        int limit) {
  SftEncoder encoder(model, data.chat_template, data.answers);
  std::vector<TokenExample> examples;
  for (const std::string& file : files) {
    require_input_file(option, file);
    read_file(file, data, encoder, limit, examples);
  }
  return examples;
}

}  // namespace taper
