// SPDX-License-Identifier: Apache-2.0
#include "train/EarlyWork.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <tuple>

#include "base/Error.hpp"
#include "base/Packing.hpp"
#include "comm/Collectives.hpp"
#include "rl/Experience.hpp"
#include "rl/MicroBatch.hpp"
#include "rollout/GeneratedSample.hpp"

namespace taper {

// What ranks write to each other.
struct EarlyWork::Letter {
  enum class Subject : std::int32_t {
    kScore,   // a sample for the home of a model that scores
    kScored,  // a figure, for the rank where its sample ended
    kLearn,   // a sample for the home of the policy
    kFigure,  // a figure of such a sample
    kOver     // the generation is over
  };
  Subject subject = Subject::kOver;
  std::int32_t call = 0;    // of the model that scores
  std::int32_t source = 0;  // the rank that writes
  Sample sample = {};
  ResponseId id = {};              // of the sample whose
  std::vector<float> values = {};  // figure this is

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.subject, self.call, self.source, self.sample, self.id, self.values);
  }
};

// What the ranks of a replica do next.
struct EarlyWork::Piece {
  static constexpr std::int32_t kLearn = -1;  // a bundle, of a new prompt if there are samples
  std::int32_t call = kLearn;                 // else samples to be scored
  std::vector<Sample> samples;

  template <class Self>
  static auto fields(Self& self) {
    return std::tie(self.call, self.samples);
  }
};

namespace {

std::vector<SampleFigure> figures_of(const std::vector<ModelCall>& calls) {
  std::vector<SampleFigure> figures;
  for (const ModelCall& call : calls) figures.push_back(call.adds.front());
  return figures;
}

// As many as a bundle has, where there are bundles.
int tokens_of_piece(const TrainPassOptions& pass) {
  return pass.bundle_tokens > 0 ? pass.bundle_tokens : pass.max_rows;
}

void add_homes(const ModelLayout& layout, std::set<int>& homes) {
  for (int replica = 0; replica < layout.grid.dp; ++replica)
    homes.insert(layout.first + replica * layout.grid.tp);
}

}  // namespace

void require_equal_replicas(const RunOptions& o, const Placement& placement) {
  if (!o.training.scores_early()) return;
  std::vector<std::pair<std::string, ModelLayout>> early;
  if (o.training.early_learning) early.emplace_back("the policy", placement.policy);
  if (placement.critic) early.emplace_back("the critic", *placement.critic);
  const ModelSet models = o.models();
  for (std::size_t i = 0; i < placement.scoring.size(); ++i)
    early.emplace_back("the " + models.scoring[i].name, placement.scoring[i]);
  for (std::size_t i = 0; i < early.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const auto& [name, layout] = early[i];
      const auto& [other, others] = early[k];
      TAPER_VALIDATE(
          can_take_turns(layout, others),
          "Training/" << (o.training.early_learning ? "Early Learning" : "Early Scoring")
                      << " is on, but " << other << " (tensor parallel " << others.grid.tp
                      << ") and " << name << " (" << layout.grid.tp
                      << ") share ranks (models that work while others generate take turns in "
                         "replicas of the same ranks); give both the same Tensor Parallel, place "
                         "them on different ranks (Placement), or switch it off");
    }
}

std::vector<std::string> early_work_warnings(const RunOptions& o, const Placement& placement,
                                             int ranks) {
  if (!o.training.scores_early()) return {};
  std::vector<std::string> list;
  if (!o.training.early_learning && placement.scoring.empty() && !placement.critic)
    list.emplace_back(
        "Training/Early Scoring is on, but no model scores: it changes nothing (a reference, with "
        "Algorithm/KL Coefficient above 0, a reward of the kind model or a critic would)");
  const RankBlock generation = placement.generation.ranks();
  if (generation.count > 1 || ranks == 1) return list;
  const auto warn = [&](const std::string& model, const ModelLayout& layout,
                        const std::string& does, const std::string& option) {
    if (layout.ranks() == generation)
      list.push_back("the " + model + " is on the only rank that generates, rank " +
                     std::to_string(generation.first) + ": it " + does + " nothing early; set " +
                     option + " to ranks that do not generate");
  };
  const ModelSet models = o.models();
  for (std::size_t i = 0; i < placement.scoring.size(); ++i)
    warn(models.scoring[i].name, placement.scoring[i], "scores", models.scoring[i].option);
  if (placement.critic) warn("critic", *placement.critic, "scores", "Placement/Critic");
  if (o.training.early_learning) warn("policy", placement.policy, "learns", "Placement/Policy");
  return list;
}

EarlyWork::EarlyWork(const RunOptions& options, const Ranks& ranks, const Placement& placement,
                     Policy& policy, Judge& judge, std::vector<ModelCall> scoring)
    : options_(options),
      ranks_(ranks),
      policy_layout_(placement.policy),
      generation_(placement.generation.ranks()),
      policy_(policy),
      judge_(judge),
      scoring_(std::move(scoring)),
      piece_tokens_(tokens_of_piece(options.pass_options())),
      mail_(ranks.world()),
      prompts_(options.rollout.samples, figures_of(scoring_)) {
  if (options.training.early_learning) {
    add_homes(policy_layout_, homes_);
    replica_ = policy.place().replica();
  }
  for (const ModelCall& call : scoring_) {
    add_homes(call.layout, homes_);
    if (replica_ == nullptr) replica_ = call.early.replica;
  }
}

void EarlyWork::begin_iteration(double kl_coef) {
  kl_coef_ = kl_coef;
  here_ = {};
  if (policy_.model() != nullptr) policy_.trainer().forget_early();
}

void EarlyWork::begin() {
  waiting_.clear();
  prompts_.clear();
  learned_.clear();
  bundles_.clear();
  unanswered_.clear();
  found_.clear();
  is_over_ = false;
}

int EarlyWork::home_of(const ModelLayout& layout, std::int64_t prompt) {
  return layout.first + static_cast<int>(prompt % layout.grid.dp) * layout.grid.tp;
}

bool EarlyWork::is_learned_early(std::int64_t prompt) const {
  return options_.training.early_learning &&
         mini_batch_of(prompt, options_.rollout.prompts, options_.training.mini_batches) == 0;
}

void EarlyWork::send(int to, const Letter& letter) {
  mail_.send(to, packed(letter));
}

void EarlyWork::add(const Completion& ended) {
  ++here_.ended;
  const std::int64_t prompt = ended.id.prompt;
  Letter letter{Letter::Subject::kScore, 0, ranks_.rank(), as_samples({ended}).front()};
  for (; letter.call < std::ssize(scoring_); ++letter.call)
    send(home_of(scoring_[letter.call].layout, prompt), letter);
  if (!is_learned_early(prompt)) return;
  unanswered_[ended.id] = std::move(letter.sample);
  follow_commands();
}

void EarlyWork::follow_commands() {
  if (unanswered_.empty()) return;
  judge_.take_answers();
  for (auto next = unanswered_.begin(); next != unanswered_.end();) {
    auto& [id, sample] = *next;
    if (!judge_.has_answers(id)) {
      ++next;
      continue;
    }
    judge_.score(sample);
    send(home_of(policy_layout_, id.prompt),
         {Letter::Subject::kLearn, 0, ranks_.rank(), std::move(sample)});
    next = unanswered_.erase(next);
  }
}

void EarlyWork::read(const std::string& message) {
  auto letter = unpacked<Letter>(message);
  switch (letter.subject) {
    case Letter::Subject::kScore:
      waiting_.push_back({letter.call, letter.source, std::move(letter.sample)});
      break;
    case Letter::Subject::kScored:
      found_[letter.id].emplace_back(letter.call, std::move(letter.values));
      break;
    case Letter::Subject::kLearn:
      prompts_.add(std::move(letter.sample));
      break;
    case Letter::Subject::kFigure:
      prompts_.add(letter.id, letter.call, std::move(letter.values));
      break;
    case Letter::Subject::kOver:
      is_over_ = true;
      break;
  }
}

// Takes what has arrived. Whether there was anything.
bool EarlyWork::read_mail() {
  bool has_come = false;
  while (const auto message = mail_.take()) {
    read(*message);
    has_come = true;
  }
  return has_come;
}

bool EarlyWork::has_work() const {
  return !bundles_.empty() || prompts_.has_complete() || !waiting_.empty();
}

bool EarlyWork::is_ready(int tp) {
  follow_commands();
  if (!is_home() || tp % replica_->size() != 0) return false;
  read_mail();
  return has_work();
}

// What can be learned from, else what has waited longest to be scored: with others that the same
// model scores.
EarlyWork::Piece EarlyWork::next_piece() {
  Piece piece;
  while (bundles_.empty() && piece.samples.empty() && prompts_.has_complete()) {
    piece.samples = prompts_.take();
    for (Sample& s : piece.samples) judge_.count_models(s);
    std::erase_if(piece.samples, [](const Sample& s) { return s.unscored; });
  }
  if (!bundles_.empty() || !piece.samples.empty() || waiting_.empty()) return piece;
  piece.call = waiting_.front().call;
  sources_.clear();
  int tokens = 0;
  for (auto next = waiting_.begin(); next != waiting_.end() && tokens < piece_tokens_;) {
    if (next->call != piece.call) {
      ++next;
      continue;
    }
    tokens += next->sample.length();
    sources_.push_back(next->source);
    piece.samples.push_back(std::move(next->sample));
    next = waiting_.erase(next);
  }
  return piece;
}

void EarlyWork::work() {
  if (replica_ == nullptr) return;
  Piece piece;
  if (is_home()) {
    read_mail();
    piece = next_piece();
  }
  piece = unpacked<Piece>(broadcast_string(*replica_, packed(piece), 0));
  if (piece.call == Piece::kLearn)
    learn(std::move(piece.samples));
  else
    score(std::move(piece));
}

void EarlyWork::score(Piece piece) {
  const PhaseScope phase(ranks_.progress, "score_early");
  const ModelCall& call = scoring_[piece.call];
  call.early.score(piece.samples);
  if (!is_home()) return;
  here_.scores += std::ssize(piece.samples);
  for (std::size_t k = 0; k < piece.samples.size(); ++k) {
    const Sample& sample = piece.samples[k];
    Letter letter{Letter::Subject::kScored,     piece.call, ranks_.rank(), {}, sample.id,
                  call.adds.front().get(sample)};
    send(sources_[k], letter);
    if (!is_learned_early(sample.id.prompt)) continue;
    letter.subject = Letter::Subject::kFigure;
    send(home_of(policy_layout_, sample.id.prompt), letter);
  }
}

// One bundle, where the policy is; of the prompt, if there is a new one.
void EarlyWork::learn(std::vector<Sample> prompt) {
  const PhaseScope phase(ranks_.progress, "learn_early");
  if (!prompt.empty()) {
    SampleSet set(std::move(prompt));
    prepare_samples(set, options_.experience, kl_coef_);
    learned_ = std::move(set.here());
    const auto bundles = policy_.trainer().bundles_of(learned_);
    bundles_.assign(bundles.begin(), bundles.end());
  }
  if (bundles_.empty()) return;
  const Range bundle = bundles_.front();
  bundles_.pop_front();
  policy_.trainer().learn_early(learned_, bundle);
  if (!is_home()) return;
  for (int i = bundle.begin; i < bundle.end; ++i) here_.tokens += std::ssize(learned_[i].response);
}

// Until there is something to do, or at least news. The watchdog ends it as it ends a collective
// call, if the ranks that generate have fallen silent.
void EarlyWork::wait_for_mail() {
  if (read_mail() || has_work() || is_over_) return;
  const LibraryWait wait(ranks_.progress, "a wait for responses", ranks_.size());
  while (!read_mail()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void EarlyWork::work_until_over() {
  enum Next : std::int32_t { kOver, kWork, kWait };
  std::vector<std::int32_t> next{kWait};
  do {
    if (is_home()) {
      wait_for_mail();
      next.front() = is_over_ ? kOver : has_work() ? kWork : kWait;
    }
    broadcast(*replica_, next, 0);  // news for the others, too, whose wait begins anew
    if (next.front() == kWork) work();
  } while (next.front() != kOver);
}

void EarlyWork::end(std::vector<Sample>& samples) {
  if (ranks_.rank() == generation_.first)
    for (const int home : homes_)
      if (!generation_.has(home)) send(home, {Letter::Subject::kOver});
  // A replica whose first rank generates, but not all of them, does nothing early.
  if (replica_ != nullptr && !generation_.has(ranks_.rank() - replica_->rank())) work_until_over();
  for (const std::string& message : mail_.finish()) read(message);
  for (Sample& s : samples)
    if (const auto found = found_.find(s.id); found != found_.end())
      for (auto& [call, values] : found->second)
        scoring_[call].adds.front().set(s, std::move(values));
  std::vector<std::int64_t> sums{here_.tokens, here_.scores, here_.ended};
  all_reduce_sum(ranks_.world(), sums);
  all_ = {sums[0], sums[1], sums[2]};
}

double EarlyWork::scored_share() const {
  const auto figures = static_cast<double>(all_.ended) * static_cast<double>(scoring_.size());
  return static_cast<double>(all_.scores) / std::max(1.0, figures);
}

}  // namespace taper
