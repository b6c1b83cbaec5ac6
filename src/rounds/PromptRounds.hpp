// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/Response.hpp"
#include "planner/Race.hpp"

namespace taper {

enum class RoundMode {
  kPlain,      // each round has the next prompts
  kTail,       // short rounds race, long ones have the prompts that were put off
  kPredicted,  // likewise, but prompts are put off for their lengths of an earlier pass
};
std::vector<std::pair<std::string, RoundMode>> named_round_modes();

struct RoundOptions {
  RoundMode mode = RoundMode::kPlain;
  // What a short round chooses from, in multiples of what it keeps. No prompts: by price.
  double prompts = 1.25;
  double samples = 1.0;

  bool is_plain() const { return mode == RoundMode::kPlain; }
  bool is_priced() const { return mode == RoundMode::kTail && prompts == 0.0; }
  std::vector<std::string> problems() const;
};

enum class RoundKind { kPlain, kShort, kLong };
const char* to_string(RoundKind kind);

// What one generation starts, and what is kept of it.
struct Round {
  RoundKind kind = RoundKind::kPlain;
  std::vector<std::int64_t> prompts;  // their numbers in the stream of prompts, ascending
  std::vector<std::int64_t> put_off;  // numbers among these that it does not start, ascending
  int samples = 0;                    // of each prompt
  RaceGoal goal;
  bool is_race = false;  // it starts more than the goal
};

// Which prompts of a stream come in which round: a function of the lengths of responses, never of
// time. With tail batching (RollPacker, arXiv 2509.21009) some prompts of a short round are put off
// until they fill a long round: each prompt of the stream is trained once. A prompt's random
// numbers are those that it has in a plain run whose iterations have one round each, whenever and
// however often it is generated: at weights that do not change, all responses are those of the
// plain run. To take a round back, keep a copy.
class PromptRounds {
 public:
  // A round keeps `samples` responses to each of `prompts` prompts. item: which of `items` prompts
  // a number of the stream is; without items, numbers never come again.
  PromptRounds(const RoundOptions& options, int prompts, int samples, std::int64_t items = 0,
               std::function<std::int64_t(std::int64_t number)> item = {});

  // Whether a period begins: short rounds and the long one that they fill, or, if nothing is put
  // off, a few rounds.
  bool begins_period() const { return age_ == 0; }
  // From how many prompts the short rounds of a period choose, if that has a price.
  double prompts_factor() const { return factor_; }
  void set_prompts_factor(double factor) { factor_ = factor; }

  Round next() const;
  // The round is over. `lengths` are those of the longest kept response to each of its prompts, in
  // tokens, 0 for a prompt that is not kept.
  void conclude(const Round& round, std::span<const int> lengths);

  // What prompt `number` of the stream draws its random numbers with.
  PromptKey key(std::int64_t number) const;

  // Prompts that were started or put off at least once, and those that wait for a long round.
  std::int64_t begun() const { return next_; }
  const std::vector<std::int64_t>& waiting() const { return waiting_; }
  // Goes on behind so many prompts of the stream, with none that wait.
  void begin_at(std::int64_t number);

  // 8-byte integers (ByteWriter). load() throws Error if they are damaged, or of other prompts.
  std::string save() const;
  void load(std::string_view bytes);

 private:
  Round short_round() const;
  std::vector<std::int64_t> next_numbers(int count) const;

  RoundOptions options_;
  int prompts_, samples_;
  double factor_;         // as RoundOptions::prompts
  std::int64_t age_ = 0;  // rounds of the present period
  std::function<std::int64_t(std::int64_t)> item_;
  std::int64_t next_ = 0;              // of the stream
  std::vector<std::int64_t> waiting_;  // ascending
  // With predictions: by item, the longest response of the last time; 0: there was none.
  std::vector<std::int32_t> lengths_;
};

}  // namespace taper
