// SPDX-License-Identifier: Apache-2.0
//
// Whole values as bytes, for messages between ranks of one machine type: numbers, enums, texts,
// paths, vectors of these, and structs that list their fields:
//
//   template <class Self>
//   static auto fields(Self& self) { return std::tie(self.name, self.cores); }
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/Bytes.hpp"
#include "base/Error.hpp"

namespace taper {
namespace detail {

// Of structs.
template <class T>
struct Packing {
  static void write(ByteWriter& out, const T& value) {
    std::apply(
        [&](const auto&... field) {
          (Packing<std::remove_cvref_t<decltype(field)>>::write(out, field), ...);
        },
        T::fields(value));
  }
  static void read(ByteReader& in, T& value) {
    std::apply(
        [&](auto&... field) {
          (Packing<std::remove_cvref_t<decltype(field)>>::read(in, field), ...);
        },
        T::fields(value));
  }
};

template <class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T>
struct Packing<T> {
  static void write(ByteWriter& out, T value) { out.value(value); }
  static void read(ByteReader& in, T& value) { in.value(value); }
};

template <>
struct Packing<std::string> {
  static void write(ByteWriter& out, const std::string& value) { out.text(value); }
  static void read(ByteReader& in, std::string& value) { value = in.text(); }
};

template <>
struct Packing<std::filesystem::path> {
  static void write(ByteWriter& out, const std::filesystem::path& value) {
    out.text(value.native());
  }
  static void read(ByteReader& in, std::filesystem::path& value) { value = in.text(); }
};

template <class T>
struct Packing<std::vector<T>> {
  static void write(ByteWriter& out, const std::vector<T>& value) {
    out.value(static_cast<std::int64_t>(value.size()));
    for (const T& item : value) Packing<T>::write(out, item);
  }
  static void read(ByteReader& in, std::vector<T>& value) {
    value.clear();
    for (auto left = in.value<std::int64_t>(); left > 0; --left)
      Packing<T>::read(in, value.emplace_back());
  }
};

}  // namespace detail

template <class T>
std::string packed(const T& value) {
  std::string bytes;
  ByteWriter out(bytes);
  detail::Packing<T>::write(out, value);
  return bytes;
}

// The value of packed(). Throws Error where the bytes are not those of one.
template <class T>
T unpacked(std::string_view bytes) {
  T value{};
  ByteReader in(bytes);
  detail::Packing<T>::read(in, value);
  TAPER_INSIST(in.done(), "a message goes on behind its value");
  return value;
}

}  // namespace taper
