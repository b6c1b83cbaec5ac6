// SPDX-License-Identifier: Apache-2.0
//
// Seeded arithmetic tasks with exact answers, for the embedded model and for tests. An item is a
// pure function of (mix, seed, index). All text is ASCII; a response ends with '#' and the answer,
// then the end-of-sequence token.
//
//   task     prompt         worked response                                  direct response
//   sum      12+34+56=      12+34=46+56=102#102                              #102
//   gcd      gcd(84,36)=    84,36 48,36 12,36 12,24 12,12#12                 #12
//   collatz  collatz(3)=    3a10b5c16d8e4f2g1#7                              #7
//
// A worked response starts with a digit, a direct one with '#': the style is decided by the first
// token. sum: running totals of 3 to 6 terms. gcd: the smaller number is subtracted from the larger
// until they are equal; the length is heavy-tailed and cannot be seen in the prompt. collatz: halve
// an even n, else 3n+1, until 1; the answer is the number of steps. A mark before each number
// counts the steps: the letter a..i stands for 1..9 steps in the present ten, and a whole ten is
// written out: ...142i71(10)214a107...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/Random.hpp"

namespace taper {

struct TaskItem {
  std::string task;  // "sum", "gcd" or "collatz"
  std::string prompt;
  std::string answer;  // ground truth, without the '#'
  std::string worked;  // correct worked response
  std::string direct;  // correct response without work
};

// Weights of the tasks; any positive sum.
struct TaskMix {
  double sum = 0.60;
  double gcd = 0.35;
  double collatz = 0.05;

  // "mix" (the default weights) or a single task by its name; another name is an Error.
  static TaskMix from_name(std::string_view name);
  std::vector<std::string> problems() const;
};

// Responses of correct items have at most this many characters.
inline constexpr int kTaskResponseLimit = 1024;

TaskItem make_task_item(const TaskMix& mix, std::uint64_t seed, std::uint64_t index);

// The worked response with slips: each step gives a wrong number with probability slip_rate, the
// steps after it go on from there without noticing, and the answer at the end follows from them
// (it may happen to be right). At most kTaskResponseLimit characters.
std::string worked_with_slips(const TaskItem& item, double slip_rate, RandomStream& random);

struct SftStyle {
  // Share of the examples with the direct response (right, but not computable at a glance).
  double direct_fraction = 0.5;
  double slip_rate = 0.015;  // per step of the worked ones

  std::vector<std::string> problems() const;
};

struct SftExample {
  std::string prompt;
  std::string response;
};

// Supervised example for the item (mix, seed, index).
SftExample make_sft_example(const TaskMix& mix, std::uint64_t seed, std::uint64_t index,
                            const SftStyle& style);

}  // namespace taper
