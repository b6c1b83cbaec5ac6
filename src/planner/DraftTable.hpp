// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ReplicaSnapshot.hpp"

namespace taper {

// How far drafts reach, by the number of sequences in a step: what replicas have reported, the
// newest most. Integers only.
class DraftTable {
 public:
  using Shares = std::array<std::int32_t, 2 * DraftShares::kLengths>;  // drafted, then accepted,
  static constexpr int kOne = 1 << 16;                                 // in 1/kOne

  // Nothing is known, and nobody drafts.
  bool empty() const;
  // What a replica of so many sequences has reported.
  void observe(int sequences, const DraftShares& shares);
  // Of steps of so many sequences; where nothing is known of them, of the nearest number of which
  // something is.
  DraftShares shares(int sequences) const;

  // 8-byte integers (ByteWriter). load() throws Error if they are damaged.
  std::string save() const;
  void load(std::string_view bytes);

  friend bool operator==(const DraftTable&, const DraftTable&) = default;

 private:
  struct Bucket {
    bool known = false;
    Shares shares{};
    std::int32_t model = 0;  // as DraftShares::model

    friend bool operator==(const Bucket&, const Bucket&) = default;
  };
  std::array<Bucket, kLengthBuckets> buckets_;
};

}  // namespace taper
