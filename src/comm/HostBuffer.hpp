// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

namespace taper {

// What collectives read and write: contiguous host memory of trivially copyable elements. A span,
// vector or array, or a view of host memory (kernels/Views.hpp); host_span() makes the span of it.
template <class Range>
requires std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>
auto host_span(Range& range) {
  using Element = std::remove_reference_t<std::ranges::range_reference_t<Range>>;
  return std::span<Element>(std::ranges::data(range), std::ranges::size(range));
}

template <class Buffer>
using BufferElement =
    std::remove_cv_t<typename decltype(host_span(std::declval<Buffer&>()))::element_type>;

template <class Buffer>
concept HostBuffer = requires(Buffer& buffer) {
  host_span(buffer);
}
&&std::is_trivially_copyable_v<BufferElement<Buffer>>;

}  // namespace taper
