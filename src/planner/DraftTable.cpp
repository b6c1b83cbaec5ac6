// SPDX-License-Identifier: Apache-2.0
#include "planner/DraftTable.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/Bytes.hpp"
#include "base/Error.hpp"

namespace taper {

bool DraftTable::empty() const {
  return std::none_of(buckets_.begin(), buckets_.end(), [](const Bucket& b) { return b.known; });
}

void DraftTable::observe(int sequences, const DraftShares& shares) {
  if (sequences <= 0 || shares == DraftShares{}) return;
  Bucket& b = buckets_[length_bucket(sequences)];
  for (int i = 0; i < DraftShares::kLengths; ++i)
    for (const auto& [at, share] :
         {std::pair(i, shares.drafted[i]), {DraftShares::kLengths + i, shares.accepted[i]}}) {
      const std::int32_t seen = share * kOne / DraftShares::kShareOne;
      b.shares[at] = b.known ? b.shares[at] + (seen - b.shares[at]) / 8 : seen;
    }
  b.model = b.known ? b.model + (shares.model - b.model) / 8 : shares.model;
  b.known = true;
}

DraftShares DraftTable::shares(int sequences) const {
  const int wanted = length_bucket(std::max(1, sequences));
  const Bucket* nearest = nullptr;
  for (int distance = 0; distance < kLengthBuckets && nearest == nullptr; ++distance)
    for (const int at : {wanted - distance, wanted + distance})
      if (at >= 0 && at < kLengthBuckets && buckets_[at].known) nearest = &buckets_[at];
  DraftShares found;
  if (nearest == nullptr) return found;
  const auto share = [&](int at) {
    return static_cast<std::uint8_t>(nearest->shares[at] * DraftShares::kShareOne / kOne);
  };
  for (int i = 0; i < DraftShares::kLengths; ++i) {
    found.drafted[i] = share(i);
    found.accepted[i] = share(DraftShares::kLengths + i);
  }
  found.model = static_cast<std::uint16_t>(nearest->model);
  return found;
}

std::string DraftTable::save() const {
  std::string bytes;
  ByteWriter out(bytes);
  for (const Bucket& b : buckets_) {
    out.value(std::int64_t{b.known});
    for (const std::int32_t share : b.shares) out.value(std::int64_t{share});
    out.value(std::int64_t{b.model});
  }
  return bytes;
}

void DraftTable::load(std::string_view bytes) {
  ByteReader in(bytes);
  for (Bucket& b : buckets_) {
    b.known = in.value<std::int64_t>() != 0;
    for (std::int32_t& share : b.shares) {
      const auto value = in.value<std::int64_t>();
      TAPER_VALIDATE(value >= 0 && value <= kOne, "the saved table of drafts is damaged");
      share = static_cast<std::int32_t>(value);
    }
    const auto model = in.value<std::int64_t>();
    TAPER_VALIDATE(model >= 0 && model <= std::numeric_limits<std::uint16_t>::max(),
                   "the saved table of drafts is damaged");
    b.model = static_cast<std::int32_t>(model);
  }
  TAPER_VALIDATE(in.done(), "the saved table of drafts is damaged");
}

}  // namespace taper
