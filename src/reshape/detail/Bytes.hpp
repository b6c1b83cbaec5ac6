// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "base/Error.hpp"

namespace taper::detail {

// Trivially copyable values and vectors of them, one after the other in a string of bytes.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& bytes) : bytes_(&bytes) {}

  template <class T>
  void value(const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_->append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  template <class T>
  void list(const std::vector<T>& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    value(static_cast<std::int64_t>(v.size()));
    bytes_->append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
  }

 private:
  std::string* bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(const std::string& bytes) : bytes_(&bytes) {}

  bool done() const { return at_ == bytes_->size(); }
  template <class T>
  T value() {
    T v;
    std::memcpy(&v, take(sizeof v), sizeof v);
    return v;
  }
  template <class T>
  std::vector<T> list() {
    const auto count = value<std::int64_t>();
    TAPER_VALIDATE(count >= 0 && static_cast<std::size_t>(count) <= bytes_->size() / sizeof(T),
                   "a list of " << count << " items in a message of " << bytes_->size()
                                << " bytes (the message is damaged)");
    std::vector<T> v(static_cast<std::size_t>(count));
    const char* from = take(v.size() * sizeof(T));
    if (!v.empty()) std::memcpy(v.data(), from, v.size() * sizeof(T));
    return v;
  }

 private:
  const char* take(std::size_t count) {
    TAPER_VALIDATE(count <= bytes_->size() - at_,
                   "a message of " << bytes_->size() << " bytes ends too early (it is damaged)");
    const char* here = bytes_->data() + at_;
    at_ += count;
    return here;
  }

  const std::string* bytes_;
  std::size_t at_ = 0;
};

}  // namespace taper::detail
