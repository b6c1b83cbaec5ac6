// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <vector>

#include "comm/Group.hpp"

namespace taper {

// A non-blocking all-gather of a few integers among some ranks of a group, the leaders, who may
// change from one exchange to the next. No communicator per set of leaders: the first leader
// collects and answers, two messages per leader and exchange: integers of one, and of all.
class LeaderExchange {
 public:
  // `group` must outlive the exchange.
  explicit LeaderExchange(const Group& group) : group_(&group) {}
  // All exchanges must be complete, unless an exception is on its way.
  ~LeaderExchange();
  LeaderExchange(const LeaderExchange&) = delete;
  LeaderExchange& operator=(const LeaderExchange&) = delete;

  // Starts an exchange among `leaders` (ranks of the group, the same list on all of them), of whom
  // each brings equally many integers. Only leaders call it, each when it likes; one exchange at a
  // time.
  void post(std::vector<int> leaders, std::span<const std::int64_t> mine);
  bool is_posted() const { return posted_; }

  // Whether the exchange that was posted is complete: then all() holds the integers of all leaders
  // in the order of the list. Returns at once.
  bool test();
  // Returns when it is complete, for leaders that have nothing else to do.
  void wait();
  std::span<const std::int64_t> all() const { return all_; }

 private:
  bool leads_exchange() const { return leaders_.front() == group_->rank(); }
  void conclude();
  void answer();
  void wait_for_answers();

  const Group* group_;
  std::vector<int> leaders_;
  std::vector<std::int64_t> mine_, all_;
  std::vector<std::int64_t> sent_;     // as all_, while answers are under way
  std::vector<MPI_Request> requests_;  // of the exchange
  std::vector<MPI_Request> answers_;   // of the answers to the one before
  bool posted_ = false;
};

}  // namespace taper
