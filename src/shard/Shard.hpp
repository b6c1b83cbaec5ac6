// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace taper {

// A half-open range of units (or leaves): [begin, end).
struct Range {
  int begin = 0;
  int end = 0;

  int size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool contains(int i) const { return begin <= i && i < end; }
  bool contains(Range other) const { return begin <= other.begin && other.end <= end; }
  friend bool operator==(const Range&, const Range&) = default;
};

// The part of `units` that shard `index` of `degree` owns: [floor(i*U/t), floor((i+1)*U/t)). With
// these boundaries the shards of degree t*k nest inside those of degree t for any number of units.
Range shard_range(int units, int degree, int index);

// The shard of `degree` that owns `unit`.
int shard_of_unit(int units, int degree, int unit);

}  // namespace taper
