// SPDX-License-Identifier: Apache-2.0
//
// How long a command may take for an answer, by what good answers to the same prompt took (the
// adaptive timeout of RollPacker, arXiv 2509.21009).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "comm/Group.hpp"

namespace taper {

struct AdaptiveTimeoutOptions {
  bool on = false;
  double factor = 1.5;  // of the anchor
  double least = 2.0;   // seconds
  double most = 30.0;   // seconds; also without an anchor
};

// In seconds. anchor: the longest time of a good answer to the prompt, in seconds; nothing if none
// is known.
double adaptive_timeout(const AdaptiveTimeoutOptions& options, std::optional<double> anchor);

// The longest times of good answers, by reward and fingerprint of the prompt's tokens. What
// find() says changes in share() alone, so all ranks always find the same.
class Anchors {
 public:
  // ns, by a hash of reward and prompt.
  using Table = std::map<std::uint64_t, std::int64_t>;

  // Whether such a score makes an answer a good one.
  static bool is_good(double score) { return score > 0.5; }

  // Seconds; nothing if there was no good answer.
  std::optional<double> find(const std::string& reward, std::uint64_t prompt) const;
  // A good answer that came on this rank.
  void note(const std::string& reward, std::uint64_t prompt, double seconds);
  // Brings together what the ranks have noted. Collective over `group`.
  void share(const Group& group);

  // What has been shared, and setting it, the same on all ranks.
  const Table& table() const { return shared_; }
  void set_table(Table table) { shared_ = std::move(table); }

 private:
  Table shared_, noted_;
};

}  // namespace taper
