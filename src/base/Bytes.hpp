// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/Error.hpp"

namespace taper {

// Trivially copyable values, vectors of them and texts, one after the other in a string of bytes:
// messages between ranks of one machine type, which ByteReader takes apart in the same order.
class ByteWriter {
 public:
  // Appends to `bytes`, which must outlive the writer.
  explicit ByteWriter(std::string& bytes) : bytes_(&bytes) {}

  template <class T>
  void value(const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_->append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  template <class T, class Allocator>
  void list(const std::vector<T, Allocator>& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    value(static_cast<std::int64_t>(v.size()));
    bytes_->append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
  }
  // Bytes as they are; who reads them must know how many.
  void bytes(std::string_view raw) { bytes_->append(raw); }
  void text(std::string_view v) {
    value(static_cast<std::int64_t>(v.size()));
    bytes(v);
  }

 private:
  std::string* bytes_;
};

// Throws Error if the bytes end within a value, a list or a text.
class ByteReader {
 public:
  // Of bytes that outlive the reader.
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  template <class T>
  void value(T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(&v, take(sizeof v), sizeof v);
  }
  template <class T>
  T value() {
    T v;
    value(v);
    return v;
  }
  template <class T, class Allocator>
  void list(std::vector<T, Allocator>& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto count = value<std::int64_t>();
    TAPER_INSIST(
        count >= 0 && static_cast<std::size_t>(count) <= rest_.size() / sizeof(T),
        "a list of " << count << " items in the last " << rest_.size() << " bytes of a message");
    v.resize(static_cast<std::size_t>(count));
    const char* from = take(v.size() * sizeof(T));
    if (!v.empty()) std::memcpy(v.data(), from, v.size() * sizeof(T));
  }
  // A view of the reader's own bytes.
  std::string_view bytes(std::size_t count) { return {take(count), count}; }
  std::string text() { return std::string(bytes(value<std::size_t>())); }

 private:
  const char* take(std::size_t count) {
    TAPER_INSIST(count <= rest_.size(),
                 "a message ends " << count - rest_.size() << " bytes before a value of it");
    const char* here = rest_.data();
    rest_.remove_prefix(count);
    return here;
  }

  std::string_view rest_;
};

}  // namespace taper
