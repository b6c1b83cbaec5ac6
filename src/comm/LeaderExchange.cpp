// SPDX-License-Identifier: Apache-2.0
#include "comm/LeaderExchange.hpp"

#include <algorithm>
#include <exception>

#include "base/Error.hpp"
#include "comm/MpiCall.hpp"
#include "comm/Wait.hpp"

namespace taper {
namespace {

// Not used by anything else on a group's communicator.
constexpr int kUpTag = 7001, kDownTag = 7002;

}  // namespace

LeaderExchange::~LeaderExchange() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    wait_for_answers();
  } catch (const Error&) {  // the run ends in its own way if a rank is gone
  }
}

void LeaderExchange::post(std::vector<int> leaders, std::span<const std::int64_t> mine) {
  TAPER_EXPECT(!posted_ && !mine.empty());
  TAPER_EXPECT(std::find(leaders.begin(), leaders.end(), group_->rank()) != leaders.end());
  const int words = static_cast<int>(mine.size());
  leaders_ = std::move(leaders);
  mine_.assign(mine.begin(), mine.end());
  all_.assign(leaders_.size() * mine.size(), 0);
  posted_ = true;
  requests_.clear();
  if (leads_exchange()) {
    std::copy(mine_.begin(), mine_.end(), all_.begin());
    for (std::size_t i = 1; i < leaders_.size(); ++i)
      TAPER_MPI_CALL(MPI_Irecv(all_.data() + i * mine_.size(), words, MPI_INT64_T, leaders_[i],
                               kUpTag, group_->comm(), &requests_.emplace_back(MPI_REQUEST_NULL)));
    return;
  }
  TAPER_MPI_CALL(MPI_Irecv(all_.data(), static_cast<int>(all_.size()), MPI_INT64_T,
                           leaders_.front(), kDownTag, group_->comm(),
                           &requests_.emplace_back(MPI_REQUEST_NULL)));
  TAPER_MPI_CALL(MPI_Isend(mine_.data(), words, MPI_INT64_T, leaders_.front(), kUpTag,
                           group_->comm(), &requests_.emplace_back(MPI_REQUEST_NULL)));
}

bool LeaderExchange::test() {
  TAPER_EXPECT(posted_);
  int done = 1;
  if (!requests_.empty())
    TAPER_MPI_CALL(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                               MPI_STATUSES_IGNORE));
  if (done != 0) conclude();
  return done != 0;
}

void LeaderExchange::wait() {
  TAPER_EXPECT(posted_);
  yield_until_done(requests_);
  conclude();
}

void LeaderExchange::conclude() {
  requests_.clear();
  posted_ = false;
  if (leads_exchange()) answer();
}

// Does not last: whoever was answered has moved on since.
void LeaderExchange::wait_for_answers() {
  yield_until_done(answers_);
  answers_.clear();
}

void LeaderExchange::answer() {
  wait_for_answers();  // all have come to the end of the exchange before, hence received them
  sent_ = all_;
  for (std::size_t i = 1; i < leaders_.size(); ++i)
    TAPER_MPI_CALL(MPI_Isend(sent_.data(), static_cast<int>(sent_.size()), MPI_INT64_T, leaders_[i],
                             kDownTag, group_->comm(), &answers_.emplace_back(MPI_REQUEST_NULL)));
}

}  // namespace taper
