// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "comm/Group.hpp"

namespace taper {

// Messages between ranks of a group that nobody waits for: a rank sends when it likes, and looks
// for what has arrived when it likes. Between two ranks messages keep their order.
class Mailbox {
 public:
  // `group` must outlive the mailbox; it has one mailbox at a time.
  explicit Mailbox(const Group& group);
  // finish() must have been called after the last message, unless an exception is on its way.
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // To a rank of the group, which may be this one. A message has less than 2 GiB. Not collective.
  void send(int to, std::string message);
  // A message that has arrived, if there is one. Not collective.
  std::optional<std::string> take();
  // Nothing is under way any more: returns what this rank has not taken. Collective over the group.
  std::vector<std::string> finish();

 private:
  struct Sent {
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  bool receive();
  void forget_delivered();

  const Group* group_;
  std::list<Sent> sent_;               // may still be under way
  std::deque<std::string> here_;       // arrived, not taken yet
  std::vector<std::int64_t> sent_to_;  // messages by rank, since finish()
  std::int64_t received_ = 0;          // likewise
};

}  // namespace taper
