// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace taper::detail {

// A Jinja template as transformers sets it up for chats: blocks take the white space around them
// along, raise_exception and strftime_now are there. The clock is not read: strftime_now gives
// 26 July 2024, the date that Llama's templates have if they are told none, so that a prompt is
// the same tomorrow and on all ranks.
class Jinja {
 public:
  // Throws Error naming `where` for a text that is no template.
  Jinja(const std::string& text, std::string where);

  // variables: an object. Throws Error naming `where` with what the template raises.
  std::string render(const nlohmann::ordered_json& variables) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
  std::string where_;
};

}  // namespace taper::detail
