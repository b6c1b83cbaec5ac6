// SPDX-License-Identifier: Apache-2.0
#include "data/Tasks.hpp"

#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/Error.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

// The numbers of a prompt, in order.
std::vector<long> read_numbers(std::string_view prompt) {
  std::vector<long> numbers;
  bool inside = false;
  for (const char c : prompt) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !inside) numbers.push_back(0);
    if (digit) numbers.back() = numbers.back() * 10 + (c - '0');
    inside = digit;
  }
  return numbers;
}

// a, separator, b appended to text.
void append_pair(std::string& text, long a, char separator, long b) {
  text.append(std::to_string(a)).append(1, separator).append(std::to_string(b));
}

std::string with_answer(std::string text, long answer) {
  return text.append("#").append(std::to_string(answer));
}

// From the right result of one step to the one that is written.
using Step = std::function<long(long)>;

std::string work_sum(const std::vector<long>& terms, const Step& step) {
  long total = terms.front();
  std::string text = std::to_string(total);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    total = step(total + terms[i]);
    text += '+';
    append_pair(text, terms[i], '=', total);
  }
  return with_answer(std::move(text), total);
}

// Wrong numbers can take very long: stops beyond the limit, with text that is too long to be used.
std::string work_gcd(const std::vector<long>& pair, const Step& step) {
  long a = pair.at(0), b = pair.at(1);
  std::string text;
  append_pair(text, a, ',', b);
  while (a != b && text.size() <= kTaskResponseLimit) {
    long& larger = a > b ? a : b;
    larger = step(a > b ? a - b : b - a);
    text += ' ';
    append_pair(text, a, ',', b);
  }
  return with_answer(std::move(text), a);
}

void append_count(std::string& text, long steps) {
  if (steps % 10 == 0)
    text.append("(").append(std::to_string(steps)).append(")");
  else
    text += static_cast<char>('a' + steps % 10 - 1);
}

std::string work_collatz(const std::vector<long>& start, const Step& step) {
  long n = start.front(), steps = 0;
  std::string text = std::to_string(n);
  while (n != 1 && text.size() <= kTaskResponseLimit) {
    n = step(n % 2 == 0 ? n / 2 : 3 * n + 1);
    append_count(text, ++steps);
    text += std::to_string(n);
  }
  return with_answer(std::move(text), steps);
}

std::string work(std::string_view task, const std::vector<long>& numbers, const Step& step) {
  if (task == "sum") return work_sum(numbers, step);
  if (task == "gcd") return work_gcd(numbers, step);
  return work_collatz(numbers, step);
}

TaskItem make_sum(RandomStream& random) {
  TaskItem item;
  const auto count = random.between(3, 6);
  long total = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const long term = random.between(10, 99);
    if (i > 0) item.prompt += '+';
    item.prompt += std::to_string(term);
    total += term;
  }
  item.prompt += "=";
  item.answer = std::to_string(total);
  return item;
}

TaskItem make_gcd(RandomStream& random) {
  TaskItem item;
  const long g = random.between(2, 12);
  const long a = g * random.between(2, 60);
  const long b = g * random.between(2, 60);
  item.prompt = "gcd(" + std::to_string(a) + "," + std::to_string(b) + ")=";
  item.answer = std::to_string(std::gcd(a, b));
  return item;
}

TaskItem make_collatz(RandomStream& random) {
  TaskItem item;
  long n = random.between(3, 999);
  item.prompt = "collatz(" + std::to_string(n) + ")=";
  long steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  item.answer = std::to_string(steps);
  return item;
}

std::string draw_task(const TaskMix& mix, double u) {
  const double total = mix.sum + mix.gcd + mix.collatz;
  if (u * total < mix.sum) return "sum";
  if (u * total < mix.sum + mix.gcd) return "gcd";
  return mix.collatz > 0 ? "collatz"
         : mix.gcd > 0   ? "gcd"
                         : "sum";  // rounding must not draw a weight of 0
}

void validate(const std::vector<std::string>& problems) {
  TAPER_VALIDATE(problems.empty(), join(problems, "; "));
}

bool is_fraction(double x) {
  return x >= 0 && x <= 1;
}

}  // namespace

TaskMix TaskMix::from_name(std::string_view name) {
  if (name == "mix") return {};
  if (name == "sum") return {1, 0, 0};
  if (name == "gcd") return {0, 1, 0};
  if (name == "collatz") return {0, 0, 1};
  TAPER_FAIL(ExitCode::kBadInput, "unknown task '" << name << "' (use sum, gcd, collatz or mix)");
}

std::vector<std::string> TaskMix::problems() const {
  const bool fine = sum >= 0 && gcd >= 0 && collatz >= 0 && sum + gcd + collatz > 0;
  if (fine) return {};
  return {"task weights must not be negative and not all 0"};
}

std::vector<std::string> SftStyle::problems() const {
  std::vector<std::string> found;
  if (!is_fraction(direct_fraction)) found.push_back("direct_fraction must lie in [0, 1]");
  if (!is_fraction(slip_rate)) found.push_back("slip_rate must lie in [0, 1]");
  return found;
}

TaskItem make_task_item(const TaskMix& mix, std::uint64_t seed, std::uint64_t index) {
  validate(mix.problems());
  RandomStream random(seed, RandomPurpose::kTask, 0, index);
  const std::string task = draw_task(mix, random.uniform());
  TaskItem item = task == "sum"   ? make_sum(random)
                  : task == "gcd" ? make_gcd(random)
                                  : make_collatz(random);
  item.task = task;
  item.worked = work(task, read_numbers(item.prompt), [](long right) { return right; });
  item.direct = '#' + item.answer;
  TAPER_ENSURE(item.worked.size() <= kTaskResponseLimit && item.worked.ends_with(item.direct));
  return item;
}

std::string worked_with_slips(const TaskItem& item, double slip_rate, RandomStream& random) {
  const Step step = [&](long right) {
    if (random.uniform() >= slip_rate) return right;
    constexpr long kErrors[] = {-10, -2, -1, 1, 2, 10};
    const long error = kErrors[random.below(std::size(kErrors))];
    return right + error >= 1 ? right + error : right - error;
  };
  const auto numbers = read_numbers(item.prompt);
  // A slip can blow up the length (gcd of 719 and 1 by subtraction); such texts are drawn again.
  for (int attempt = 0; attempt < 16; ++attempt) {
    std::string text = work(item.task, numbers, step);
    if (text.size() <= kTaskResponseLimit) return text;
  }
  return item.worked;
}

SftExample make_sft_example(const TaskMix& mix, std::uint64_t seed, std::uint64_t index,
                            const SftStyle& style) {
  validate(style.problems());
  const TaskItem item = make_task_item(mix, seed, index);
  // Another stream than the item's, so that the style does not change the item.
  RandomStream random(seed, RandomPurpose::kTask, 1, index);
  if (random.uniform() < style.direct_fraction) return {item.prompt, item.direct};
  return {item.prompt, worked_with_slips(item, style.slip_rate, random)};
}

}  // namespace taper
