// SPDX-License-Identifier: Apache-2.0
//
// Whole values as bytes, for messages between ranks of one machine type: numbers, enums, texts,
// paths, plain structs of numbers, vectors and pairs of these, and structs that list their fields:
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
#include <utility>
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

// What is copied as it lies in memory.
template <class T>
concept PlainValue = std::is_arithmetic_v<T> || std::is_enum_v<T> ||
    (std::is_aggregate_v<T>&& std::is_trivially_copyable_v<T> &&
     !requires(T & value) { T::fields(value); });

template <PlainValue T>
struct Packing<T> {
  static void write(ByteWriter& out, const T& value) { out.value(value); }
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
    if constexpr (PlainValue<T>) return out.list(value);
    out.value(static_cast<std::int64_t>(value.size()));
    for (const T& item : value) Packing<T>::write(out, item);
  }
  static void read(ByteReader& in, std::vector<T>& value) {
    if constexpr (PlainValue<T>) return in.list(value);
    value.clear();
    for (auto left = in.value<std::int64_t>(); left > 0; --left)
      Packing<T>::read(in, value.emplace_back());
  }
};

template <class A, class B>
struct Packing<std::pair<A, B>> {
  static void write(ByteWriter& out, const std::pair<A, B>& value) {
    Packing<A>::write(out, value.first);
    Packing<B>::write(out, value.second);
  }
  static void read(ByteReader& in, std::pair<A, B>& value) {
    Packing<A>::read(in, value.first);
    Packing<B>::read(in, value.second);
  }
};

}  // namespace detail

// One value among others.
template <class T>
void pack(ByteWriter& out, const T& value) {
  detail::Packing<T>::write(out, value);
}
template <class T>
void unpack(ByteReader& in, T& value) {
  detail::Packing<T>::read(in, value);
}

template <class T>
std::string packed(const T& value) {
  std::string bytes;
  ByteWriter out(bytes);
  pack(out, value);
  return bytes;
}

// The value of packed(). Throws Error if the bytes are not those of one.
template <class T>
T unpacked(std::string_view bytes) {
  T value{};
  ByteReader in(bytes);
  unpack(in, value);
  TAPER_INSIST(in.done(), "a message goes on after its value");
  return value;
}

}  // namespace taper
