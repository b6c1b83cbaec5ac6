// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace taper {
namespace detail {

// Converts to double alone, not to what a double converts to.
struct AnyDouble {
  template <std::same_as<double> T>
  operator T() const;
};

template <class Struct, std::size_t... I>
constexpr bool is_made_of_doubles(std::index_sequence<I...>) {
  return requires {
    Struct{((void)I, AnyDouble{})...};
  };
}

}  // namespace detail

// Structs whose members are doubles and nothing else: what lies in memory like an array of doubles.
template <class Struct>
concept DoublesOnly =
    std::is_aggregate_v<Struct> && std::is_class_v<Struct> &&
            std::is_trivially_copyable_v<Struct> && sizeof(Struct) %
            sizeof(double) ==
        0 &&
    detail::is_made_of_doubles<Struct>(std::make_index_sequence<sizeof(Struct) / sizeof(double)>{});

}  // namespace taper
