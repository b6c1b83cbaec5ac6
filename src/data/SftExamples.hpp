// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/DataOptions.hpp"
#include "data/SftData.hpp"
#include "instance/ModelFiles.hpp"
#include "shard/Shard.hpp"

namespace taper {

// An example of supervised fine-tuning as a model sees it.
struct TokenExample {
  std::vector<std::int32_t> tokens;
  std::vector<Range> answers;  // of tokens: what is learned; ascending, never token 0

  int length() const { return static_cast<int>(tokens.size()); }
  int targets() const;
};

// Examples of any form as token ids of one model. A text that answers a text is followed by the
// model's first end-of-sequence id; in chats the template ends the turns.
class SftEncoder {
 public:
  SftEncoder(const ModelFiles& files, std::string chat_template, SftAnswers answers)
      : files_(&files), chat_template_(std::move(chat_template)), answers_(answers) {}

  TokenExample encode_pair(const std::string& prompt, const std::string& response) const;
  // `where` names the example in errors. Throws Error for ids that the model does not have, and
  // if nothing is left to learn.
  TokenExample encode(const SftItem& item, const std::string& where);

 private:
  TokenExample encode_chat(const SftItem& item, const std::string& where);
  const ChatTemplate& chat_template();

  const ModelFiles* files_;
  std::string chat_template_;
  SftAnswers answers_;
  std::optional<ChatTemplate> template_;
};

// The examples of files, in their order, none longer than `limit` tokens; what was left out or cut
// is logged by file. `option` names the files in errors (a key of the run file). Throws Error
// naming file and line of an example that cannot be learned, and naming the file if nothing is
// left of it.
std::vector<TokenExample> read_examples(const std::string& option,
                                        const std::vector<std::string>& files,
                                        const SftDataOptions& data, const ModelFiles& model,
                                        int limit);

}  // namespace taper
