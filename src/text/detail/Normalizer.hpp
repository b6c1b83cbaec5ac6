// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/detail/Component.hpp"

namespace taper::detail {

// Text before tokens are looked for: a list of steps, each valid UTF-8 to valid UTF-8.
class Normalizer {
 public:
  Normalizer() = default;
  // Null means no steps. Supported: NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence.
  explicit Normalizer(const Component& component) { add(component); }

  std::string apply(std::string text) const;

 private:
  void add(const Component& component);

  std::vector<std::function<std::string(std::string)>> steps_;
};

}  // namespace taper::detail
