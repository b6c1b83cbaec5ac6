// SPDX-License-Identifier: Apache-2.0
#include "study/RoundStudy.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/Text.hpp"
#include "rounds/RoundChoice.hpp"

namespace taper {
namespace {

struct RoundWay {
  std::string name;
  RoundOptions options;
  int period = 1;        // iterations
  bool redraws = false;  // what was put off
};

std::vector<RoundWay> ways_for(const RoundSetting& setting) {
  const auto tail = [](double prompts, double samples = 1.0) {
    return RoundOptions{RoundMode::kTail, prompts, samples};
  };
  std::vector<RoundWay> ways{{"plain", {}, 1},
                             {"1.25", tail(1.25), 5},
                             {"1.5", tail(1.5), 3},
                             {"2", tail(2.0), 2},
                             {"by price", tail(0.0), 1}};
  if (setting.has_more_samples) ways.push_back({"1.25, samples 1.25", tail(1.25, 1.25), 5});
  if (setting.has_more_samples && setting.redrawn)
    ways.push_back({"published", tail(1.25, 1.25), 5, true});
  return ways;
}

// Of all kept responses, in their order.
std::vector<int> kept_lengths(const PlayedRound& played) {
  std::vector<int> lengths;
  for (const ResponseId& id : played.kept)
    lengths.push_back(
        played.trace
            .outcomes[static_cast<std::size_t>(id.prompt * played.trace.work.samples + id.sample)]
            .response);
  return lengths;
}

// Plays one way: its traces in order, the first half to learn from.
class Player {
 public:
  Player(const RoundSetting& setting, const RoundWay& way, const SimulatedMachine& machine)
      : setting_(setting),
        way_(way),
        rounds_(way.options, setting.prompts, setting.samples),
        plain_(setting.work) {
    plain_.samples = setting.samples;
    plain_.sequences = setting.prompts * setting.samples;
    plain_.prompt_tokens = setting.prompt_tokens * plain_.sequences;
    if (!way.options.is_priced()) return;
    std::vector<Layout> layouts;
    for (const int tp : setting.degrees) layouts.push_back(Layout::uniform(tp, setting.chain));
    choice_ = std::make_unique<RoundChoice>(machine.profile, layouts, setting.work.max_new_tokens);
  }

  // If prices decide how long periods are: whether one is over.
  bool is_between_periods() const { return !choice_ || rounds_.begins_period(); }

  // Nothing if too few prompts are known.
  std::optional<PlayedRound> next() {
    if (choice_ && rounds_.begins_period())
      rounds_.set_prompts_factor(choice_->choose(plain_, rounds_.prompts_factor()));
    const Round round = rounds_.next();
    if (setting_.stream > 0 && round.prompts.back() >= setting_.stream) return std::nullopt;
    const bool is_again = round.kind == RoundKind::kLong && way_.redraws;
    PlayedRound played = play_round(round, setting_.work, setting_.prompt_tokens,
                                    is_again ? setting_.redrawn : setting_.length);
    played.trace.work.iteration = iteration_++;
    rounds_.conclude(round, played.longest_kept);
    if (choice_) choice_->add(kept_lengths(played));
    if (choice_ && rounds_.begins_period()) choice_->end_period(setting_.samples);
    return played;
  }

 private:
  const RoundSetting& setting_;
  const RoundWay& way_;
  PromptRounds rounds_;
  Workload plain_;
  std::unique_ptr<RoundChoice> choice_;
  std::int64_t iteration_ = 0;
};

void count(RoundResult& result, const PlayedRound& played, int long_tokens) {
  const std::set<ResponseId> kept(played.kept.begin(), played.kept.end());
  const int samples = played.trace.work.samples;
  for (std::size_t i = 0; i < played.trace.outcomes.size(); ++i) {
    const int tokens = played.trace.outcomes[i].response;
    const auto place = static_cast<int>(i);
    result.generated += tokens;
    if (!kept.contains({place / samples, place % samples})) continue;
    ++result.responses;
    result.trained += tokens;
    result.long_responses += tokens > long_tokens ? 1 : 0;
  }
}

RoundResult play(const RoundSetting& setting, const RoundWay& way,
                 const SimulatedMachine& machine) {
  RoundResult result;
  result.name = way.name;
  const int iterations = std::max(1, setting.iterations / way.period) * way.period;
  Player player(setting, way, machine);
  Planner planner(machine.profile, setting.chain, setting.planner);
  // False if too few prompts are known.
  const auto play_periods = [&](const auto& visit) {
    for (int i = 0; i < iterations || !player.is_between_periods(); ++i) {
      const std::optional<PlayedRound> played = player.next();
      if (!played) return false;
      visit(*played, simulate(planner, setting.planner, played->trace, machine).time_ns);
    }
    return true;
  };
  std::vector<std::int64_t> fixed(setting.degrees.size(), 0);
  const auto add = [&](const PlayedRound& played, std::int64_t adaptive_ns) {
    ++result.iterations;
    result.adaptive_ns += adaptive_ns;
    for (std::size_t k = 0; k < fixed.size(); ++k)
      fixed[k] +=
          replay_ns(played.trace, Layout::uniform(setting.degrees[k], setting.chain), {}, machine);
    count(result, played, setting.long_tokens);
  };
  // What is learned first does not count.
  if (!play_periods([](const PlayedRound&, std::int64_t) {}) || !play_periods(add)) return result;
  result.static_ns = *std::min_element(fixed.begin(), fixed.end());
  return result;
}

double seconds_each(std::int64_t ns, int iterations) {
  return static_cast<double>(ns) * 1e-9 / std::max(1, iterations);
}

}  // namespace

ResponseLength drawn_by_iteration(int prompts, int samples,
                                  std::function<std::vector<int>(std::int64_t iteration)> draw) {
  const auto known = std::make_shared<std::map<std::int64_t, std::vector<int>>>();
  return [=](std::int64_t number, int sample) {
    std::vector<int>& drawn = (*known)[number / prompts];
    if (drawn.empty()) drawn = draw(number / prompts);
    return drawn[static_cast<std::size_t>(number % prompts * samples + sample)];
  };
}

double RoundResult::static_s() const {
  return seconds_each(static_ns, iterations);
}

double RoundResult::adaptive_s() const {
  return seconds_each(adaptive_ns, iterations);
}

std::vector<RoundResult> study_rounds(const RoundSetting& setting,
                                      const SimulatedMachine& machine) {
  std::vector<RoundResult> results;
  for (const RoundWay& way : ways_for(setting)) {
    RoundResult result = play(setting, way, machine);
    if (result.static_ns > 0)
      results.push_back(std::move(result));
    else if (results.empty())
      break;  // there is nothing to compare with
  }
  return results;
}

std::string round_head() {
  return format_text("%-28s %-19s %6s %10s %7s %10s %7s %9s %7s\n", "lengths", "rounds", "iter.",
                     "static", "faster", "adaptive", "faster", "generated", "long");
}

std::string round_rows(const std::string& name, std::span<const RoundResult> results) {
  std::string text;
  for (const RoundResult& r : results) {
    const RoundResult& plain = results.front();
    const auto share = [](std::int64_t part, std::int64_t whole) {
      return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
    };
    text +=
        format_text("%-28s %-19s %6d %8.2f s %6.2fx %8.2f s %6.2fx %8.2fx %6.1f%%\n", name.c_str(),
                    r.name.c_str(), r.iterations, r.static_s(), plain.static_s() / r.static_s(),
                    r.adaptive_s(), plain.adaptive_s() / r.adaptive_s(),
                    share(r.generated, r.trained), 100 * share(r.long_responses, r.responses));
  }
  return text;
}

std::string round_legend() {
  return R"(
rounds    plain, or how many times the prompts short rounds choose from; by price: 1, 1.25, 1.5 or 2
          for each period; published: prompts that were put off draw other responses
static    generation time of an iteration in the best uniform layout over all iterations
faster    against plain rounds, for as many trained samples
adaptive  the same with changes of layout
generated tokens for each token that is trained
long      share of long responses among those that are trained
)";
}

}  // namespace taper
