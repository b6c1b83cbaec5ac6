// SPDX-License-Identifier: Apache-2.0
#include "planner/Snapshot.hpp"

namespace taper {

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
