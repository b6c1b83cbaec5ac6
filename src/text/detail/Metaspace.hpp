// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "text/detail/Component.hpp"

namespace taper::detail {

enum class Prepend { kNever, kFirst, kAlways };

// Options of the Metaspace pre-tokenizer and decoder: a visible character (usually U+2581) stands
// for the space.
struct Metaspace {
  std::string replacement;
  Prepend prepend = Prepend::kAlways;
  bool split = true;

  // Reads the present form (prepend_scheme) and the older one (add_prefix_space).
  explicit Metaspace(const Component& component)
      : replacement(component.text_or("replacement", "\xE2\x96\x81")),
        split(component.flag_or("split", true)) {
    const std::string scheme = component.text_or("prepend_scheme", "always");
    if (scheme == "never" || !component.flag_or("add_prefix_space", true))
      prepend = Prepend::kNever;
    else if (scheme == "first")
      prepend = Prepend::kFirst;
    else if (scheme != "always")
      component.fail("unknown prepend_scheme '" + scheme + "'");
  }
};

}  // namespace taper::detail
