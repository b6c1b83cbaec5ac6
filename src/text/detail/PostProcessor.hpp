// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "text/detail/Component.hpp"

namespace taper::detail {

// The special tokens around one text. (Pairs of texts are of no use here and are not read.)
class PostProcessor {
 public:
  PostProcessor() = default;
  // Null adds nothing. Supported: TemplateProcessing, ByteLevel (no effect on ids), Sequence.
  explicit PostProcessor(const Component& component) { add(component); }

  std::vector<int> apply(std::vector<int> ids) const;

 private:
  struct Template {
    std::vector<int> before, after;  // ids around the text
  };
  void add(const Component& component);
  void add_template(const Component& component);

  std::vector<Template> steps_;
};

}  // namespace taper::detail
