// SPDX-License-Identifier: Apache-2.0
#include "comm/Mailbox.hpp"

#include <sched.h>

#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "comm/MpiCall.hpp"
#include "comm/Progress.hpp"
#include "comm/Wait.hpp"

namespace taper {
namespace {

// Not used by anything else on a group's communicator.
constexpr int kTag = 7003;

}  // namespace

Mailbox::Mailbox(const Group& group)
    : group_(&group), sent_to_(static_cast<std::size_t>(group.size()), 0) {}

// MPI reads from the buffers of messages that are under way.
Mailbox::~Mailbox() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    for (Sent& sent : sent_) yield_until_done({&sent.request, 1});
  } catch (const Error&) {  // the run ends in its own way if a rank is gone
  }
}

void Mailbox::send(int to, std::string message) {
  TAPER_INSIST(message.size() < std::numeric_limits<int>::max(),
               "a message of " << message.size() << " bytes to rank "
                               << group_->world_ranks()[static_cast<std::size_t>(to)]
                               << " (MPI counts bytes in an int: less than 2 GiB)");
  ++sent_to_.at(static_cast<std::size_t>(to));
  if (to == group_->rank()) {
    ++received_;
    here_.push_back(std::move(message));
    return;
  }
  forget_delivered();
  Sent& sent = sent_.emplace_back(Sent{std::move(message)});
  TAPER_MPI_CALL(MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE, to,
                           kTag, group_->comm(), &sent.request));
}

void Mailbox::forget_delivered() {
  for (auto sent = sent_.begin(); sent != sent_.end();) {
    int done = 0;
    TAPER_MPI_CALL(MPI_Test(&sent->request, &done, MPI_STATUS_IGNORE));
    sent = done != 0 ? sent_.erase(sent) : std::next(sent);
  }
}

bool Mailbox::receive() {
  if (group_->is_null()) return false;
  int arrived = 0;
  MPI_Status status;
  TAPER_MPI_CALL(MPI_Iprobe(MPI_ANY_SOURCE, kTag, group_->comm(), &arrived, &status));
  if (arrived == 0) return false;
  int size = 0;
  TAPER_MPI_CALL(MPI_Get_count(&status, MPI_BYTE, &size));
  std::string& message = here_.emplace_back(static_cast<std::size_t>(size), '\0');
  TAPER_MPI_CALL(MPI_Recv(message.data(), size, MPI_BYTE, status.MPI_SOURCE, kTag, group_->comm(),
                          MPI_STATUS_IGNORE));
  ++received_;
  return true;
}

std::optional<std::string> Mailbox::take() {
  while (receive()) {
  }
  if (here_.empty()) return std::nullopt;
  std::string first = std::move(here_.front());
  here_.pop_front();
  return first;
}

std::vector<std::string> Mailbox::finish() {
  all_reduce_sum(*group_, sent_to_);
  {
    std::optional<LibraryWait> wait;  // a rank that stops here is seen by the watchdog
    if (Progress* progress = group_->progress())
      wait.emplace(*progress, "messages", group_->size());
    while (received_ < sent_to_[static_cast<std::size_t>(group_->rank())])
      if (!receive()) sched_yield();
    for (Sent& sent : sent_) yield_until_done({&sent.request, 1});
  }
  sent_.clear();
  sent_to_.assign(sent_to_.size(), 0);
  received_ = 0;
  barrier(*group_);  // or messages sent later could be counted among those
  std::vector<std::string> rest(std::make_move_iterator(here_.begin()),
                                std::make_move_iterator(here_.end()));
  here_.clear();
  return rest;
}

}  // namespace taper
