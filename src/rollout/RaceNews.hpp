// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/Response.hpp"
#include "comm/Group.hpp"
#include "planner/Race.hpp"

namespace taper {

// The race of a generation (planner/Race.hpp) as one rank knows it. What ends in a group is known
// to all its ranks at once. A leader tells the other leaders with its consultations, a few at a
// time, and its group of what it hears from them when a control word says so: the ranks of a group
// know the same at every step.
class RaceNews {
 public:
  // Of one consultation: lengths of responses, packed into integers.
  static constexpr int kWords = 32;

  explicit RaceNews(const RaceGoal& goal) : race_(goal) {}

  // A response of this group. Throws Error if its numbers are too large to be told.
  void ended(const ResponseId& id, int length);
  const Race& race() const { return race_; }

  // On leaders: what to tell next, and what others have told.
  void write(std::span<std::int64_t, kWords> words);
  void read(std::span<const std::int64_t, kWords> words);
  // Whether the leader has heard something that its group does not know of.
  bool has_heard() const { return !heard_.empty(); }
  // Collective over the group.
  void tell(const Group& group);

  // All ranks know the same afterwards, and groups may change. leads: whether this rank speaks for
  // a group. Collective over the world.
  void share(const Group& world, bool leads);

 private:
  void add(std::span<const std::int64_t> words);

  Race race_;
  std::vector<std::int64_t> own_;    // of this group, since the last share()
  std::size_t told_ = 0;             // of these, to the other leaders
  std::vector<std::int64_t> heard_;  // of others, by this leader alone
};

}  // namespace taper
