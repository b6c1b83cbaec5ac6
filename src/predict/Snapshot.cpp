// SPDX-License-Identifier: Apache-2.0
#include "predict/Snapshot.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace taper {

int ReplicaSnapshot::running() const {
  return std::accumulate(lengths.begin(), lengths.end(), 0);
}

int length_bucket(std::int64_t response) {
  if (response < 2) return 0;
  return std::min(ReplicaSnapshot::kBuckets - 1,
                  static_cast<int>(std::bit_width(static_cast<std::uint64_t>(response))) - 1);
}

int Snapshot::alive() const {
  int alive = 0;
  for (const ReplicaSnapshot& r : replicas) alive += r.alive();
  return alive;
}

std::int64_t Snapshot::finished() const {
  std::int64_t finished = 0;
  for (const ReplicaSnapshot& r : replicas) finished += r.finished;
  return finished;
}

}  // namespace taper
