// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/Text.hpp"

namespace taper {

// A hash of values in order (FNV-1a), by which ranks, or a run and its checkpoint, tell whether
// they have the same data. The same on all machines of one byte order; against accidents, not
// malice. Values must have no padding bytes.
class Fingerprint {
 public:
  explicit Fingerprint(std::string_view start = "") : value_(fnv1a(start)) {}

  template <class T>
  Fingerprint& add(const T& value) {
    return add_all(std::span<const T>(&value, 1));
  }
  // The values alone: if their number may differ, it is to be added, too.
  template <class T>
  Fingerprint& add_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    value_ = fnv1a({reinterpret_cast<const char*>(values.data()), values.size_bytes()}, value_);
    return *this;
  }
  // With its length.
  Fingerprint& add_text(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    value_ = fnv1a(text, value_);
    return *this;
  }

  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace taper
