// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileJob.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"
#include "io/OutputPath.hpp"
#include "profile/PassProbe.hpp"
#include "profile/ProfileFile.hpp"
#include "profile/RunIdentity.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr int kDefaultPositions = 2048;
constexpr double kSaveSeconds = 3, kReportSeconds = 5;

std::int64_t in_ns(double seconds) {
  return std::llround(seconds * 1e9);
}

// The degrees of the chain that the model's units allow.
std::vector<int> possible_degrees(const ModelFiles& files, const Ranks& ranks) {
  std::vector<int> degrees;
  for (const int degree : ranks.chain.degrees())
    if (degree <= largest_degree(files.table)) degrees.push_back(degree);
  return degrees;
}

}  // namespace

std::vector<std::string> ProfileOptions::problems() const {
  std::vector<std::string> list = probe.problems();
  if (!(budget >= 0)) list.push_back("the budget must not be negative (0: by the model's speed)");
  if (output.empty()) list.push_back("no output file is given");
  return list;
}

ProfileJob::ProfileJob(const ProfileOptions& options, ModelFiles& files, const Ranks& ranks)
    : options_(options),
      files_(&files),
      ranks_(&ranks),
      node_of_rank_(ranks.hosts.node_of_rank()),
      degrees_(options.degrees) {
  if (options_.probe.max_positions == 0)
    options_.probe.max_positions = std::min(files.config.max_positions, kDefaultPositions);
  require_no_problems(options_.problems(), "profile");
  files.require_context(options_.probe.max_positions, "--max-positions");
  if (degrees_.empty()) degrees_ = possible_degrees(files, ranks);
  std::sort(degrees_.begin(), degrees_.end());
  degrees_.erase(std::unique(degrees_.begin(), degrees_.end()), degrees_.end());
  record_.identity = gather_identity(files, options.probe.type, ranks);
  probe_ = std::make_unique<StepProbe>(options_.probe, files, ranks, degrees_);
  record_.settings = settings();
  record_.budget = options.budget;
  if (ranks.rank() == 0) restore();
}

Facts ProfileJob::settings() const {
  return {{"degrees", join(degrees_, ",")},
          {"max_positions", std::to_string(options_.probe.max_positions)},
          {"max_batch", std::to_string(options_.probe.max_batch)},
          {"step_rows", std::to_string(options_.probe.step_rows)},
          {"kv_memory_mb", std::to_string(options_.probe.kv_memory_mb)}};
}

// Reads what earlier starts of the same job have left. On rank 0.
void ProfileJob::restore() {
  require_writable(options_.output, {});
  const fs::path partial = partial_path(options_.output);
  if (options_.fresh) {
    fs::remove(partial);
    return;
  }
  if (fs::exists(partial)) {
    ProfileRecord found = load_partial(options_.output);
    require_same_identity(partial, Completeness::kPartial, found.identity, record_.identity);
    for (const auto& [name, value] : record_.settings)
      TAPER_VALIDATE(found.settings[name] == value,
                     path_text(partial) << " was started with " << name << " "
                                        << found.settings[name] << " (now it is " << value
                                        << "); give the same value, or start over with --fresh");
    before_ = found.seconds_spent;
    // Once a budget has ended the measurements, a new one counts from there; without one they are
    // completed.
    if (found.ended)
      found.budget = record_.budget > 0 ? before_ + record_.budget : 0;
    else if (record_.budget > 0)
      found.budget = record_.budget;
    found.ended = false;
    record_ = std::move(found);
    TAPER_INFO("profile: resuming after " << std::lround(before_) << " s with "
                                          << count_text(std::ssize(record_.points), "point"));
  } else if (fs::exists(options_.output)) {
    complete_ = read_profile(options_.output);
    require_same_identity(options_.output, Completeness::kComplete, complete_->identity,
                          record_.identity);
    if (complete_->is_complete()) {
      require_degrees(*complete_, degrees_);
      TAPER_INFO(path_text(options_.output) << " is complete; --fresh measures it again");
    } else {
      TAPER_INFO(path_text(options_.output) << " is incomplete and " << path_text(partial)
                                            << " does not exist: the profile is measured again");
      complete_.reset();
    }
  }
}

std::vector<PairClass> ProfileJob::pairs(int degree) const {
  std::vector<PairClass> list;
  for (int first = 0; first < ranks_->size(); first += degree)
    list.push_back(pair_class(first, degree, node_of_rank_));
  return list;
}

std::vector<ProfileSide> ProfileJob::sides() const {
  std::vector<ProfileSide> list;
  for (const int degree : degrees_) {
    std::vector<PairClass> classes = pairs(degree);
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    list.push_back({degree,
                    classes,
                    {probe_->max_batch(degree), probe_->max_tokens(degree),
                     [this, degree](int tokens, int batch) {
                       return probe_->max_context(degree, tokens, batch);
                     }}});
  }
  return list;
}

std::int64_t ProfileJob::page_bytes() const {
  return page_floats(files_->config.head_dim, kv_type(ranks_->exec)) * std::int64_t{sizeof(float)};
}

void ProfileJob::measure_switches() {
  const std::int64_t page = page_bytes();
  switches_.clear();
  for (const ProfileSide& side : sides())
    for (const PairClass pair : side.classes)
      switches_.push_back(measure_switch(*ranks_, probe_->weights(), probe_->parallel(side.degree),
                                         side.degree, pair, pairs(side.degree), page));
  meeting_ = measure_meeting(*ranks_, options_.probe.max_batch);
}

bool ProfileJob::visit_next(ProfileSchedule* schedule) {
  std::array<std::int64_t, 8> order{};
  if (schedule != nullptr) {
    record_.seconds_spent = before_ + timer_.seconds();
    if (const auto visit = schedule->next())
      order = {1,
               visit->degree,
               visit->shape.tokens,
               visit->shape.batch,
               visit->shape.context,
               visit->shape.drafted,
               visit->warm_up,
               visit->steps};
  }
  broadcast(ranks_->world(), order, 0);
  if (order[0] == 0) return false;
  const ProfileVisit visit{static_cast<int>(order[1]),
                           {static_cast<int>(order[2]), static_cast<int>(order[3]), order[4],
                            static_cast<int>(order[5])},
                           static_cast<int>(order[6]),
                           static_cast<int>(order[7])};
  const auto ns = probe_->measure(visit.degree, visit.shape, visit.warm_up, visit.steps);
  if (schedule == nullptr) return true;
  const auto classes = pairs(visit.degree);
  for (const PairClass pair : {PairClass::kSameNode, PairClass::kOtherNode}) {
    std::vector<std::int64_t> mine;  // of the replicas of the class
    for (std::size_t g = 0; g < classes.size(); ++g)
      if (classes[g] == pair)
        mine.insert(mine.end(), ns.begin() + static_cast<std::ptrdiff_t>(g) * visit.steps,
                    ns.begin() + static_cast<std::ptrdiff_t>(g + 1) * visit.steps);
    if (!mine.empty()) schedule->add(visit, pair, mine);
  }
  keep_books(*schedule);
  return true;
}

// The side file and a line for people, now and then.
void ProfileJob::keep_books(const ProfileSchedule& schedule) {
  if (timer_.seconds() > saved_ + kSaveSeconds) {
    record_.seconds_spent = before_ + timer_.seconds();
    save_partial(options_.output, record_);
    saved_ = timer_.seconds();
  }
  if (timer_.seconds() < reported_ + kReportSeconds) return;
  reported_ = timer_.seconds();
  std::size_t done = 0;
  for (const ProfilePoint& p : record_.points)
    done += static_cast<int>(p.visits.size()) >= ProfileSchedule::kFirstVisits;
  const double spent = before_ + timer_.seconds();
  std::string line = format_text("profile %4.0f s: %zu of %zu points done, visits %d", spent, done,
                                 record_.points.size(), schedule.visits());
  if (schedule.visits() >= ProfileSchedule::kLeastVisits)
    for (const ProfileSide& side : schedule.sides())
      line += format_text(", TP %d repeats within %.1f %%", side.degree,
                          schedule.repeat_noise(side.degree, side.classes[0]).p50 * 1e-4);
  if (spent < record_.budget)
    line += format_text(", at most %.0f s left", record_.budget - spent);
  else if (record_.budget > 0)
    line += format_text(", beyond its budget until each point has %d visits",
                        ProfileSchedule::kLeastVisits);
  TAPER_INFO(line);
}

LatencyProfile ProfileJob::run() {
  ranks_->progress.set_phase("profile");
  std::array<std::int32_t, 2> found{complete_ ? 1 : 0, complete_ && !complete_->passes.empty()};
  broadcast(ranks_->world(), found, 0);
  if (found[0] == 1) {
    LatencyProfile profile = complete_.value_or(LatencyProfile());
    if (!options_.passes || found[1] == 1) return profile;
    add_passes(profile);
    if (ranks_->rank() == 0) write_profile(options_.output, profile);
    barrier(ranks_->world());
    return profile;
  }
  if (ranks_->rank() == 0) save_partial(options_.output, record_);  // fails now if ever
  probe_->load();
  measure_switches();
  timer_.restart();  // the budget is for steps
  std::optional<ProfileSchedule> schedule;
  if (ranks_->rank() == 0) schedule.emplace(sides(), record_);
  while (visit_next(schedule ? &*schedule : nullptr)) {
  }
  LatencyProfile profile;
  if (schedule) {
    profile = result(*schedule);
    write_profile(options_.output, profile);
    if (profile.is_complete()) {
      fs::remove(partial_path(options_.output));
    } else {  // for the next start
      record_.ended = true;
      save_partial(options_.output, record_);
    }
  }
  if (options_.passes) {
    add_passes(profile);
    if (schedule) write_profile(options_.output, profile);
  }
  barrier(ranks_->world());  // the file is there for all
  return profile;
}

void ProfileJob::add_passes(LatencyProfile& profile) {
  PassProbeOptions probe;
  probe.type = options_.probe.type;
  profile.passes = measure_passes(probe, *files_, *ranks_, degrees_);
}

LatencyProfile ProfileJob::result(const ProfileSchedule& schedule) const {
  LatencyProfile p;
  p.identity = record_.identity;
  p.ranks = ranks_->size();
  p.ranks_per_node = static_cast<std::int32_t>(
      std::count(node_of_rank_.begin(), node_of_rank_.end(), node_of_rank_[0]));
  const ModelConfig& config = files_->config;
  p.kv_bytes_per_position = page_bytes() / kPage * config.layers * config.kv_heads;
  p.block_size = kPage;
  p.measured_percent = schedule.measured_percent();
  p.steps = schedule.samples();
  p.verify = schedule.verify_samples();
  for (const ProfileSide& side : schedule.sides())
    for (const PairClass pair : side.classes) {
      p.fit_errors.push_back(schedule.fit_error(side.degree, pair));
      p.repeat_noise.push_back(schedule.repeat_noise(side.degree, pair));
    }
  // All ranks meet, whatever the change.
  if (p.ranks > 1) p.rendezvous.push_back({p.ranks, in_ns(meeting_)});
  for (const MeasuredSwitch& c : switches_) {
    p.groups_ns = std::max(p.groups_ns, in_ns(c.groups));
    p.weights_ns = std::max(p.weights_ns, in_ns(c.weights));
    if (c.degree == 1) continue;
    // The smallest group of a class is nearest to a pair of ranks.
    if (std::none_of(p.moves.begin(), p.moves.end(),
                     [&](const MoveCost& m) { return m.pair == c.pair; }))
      p.moves.push_back(
          {c.pair, in_ns(c.kv_move.latency), std::llround(1e12 / c.kv_move.bytes_per_second)});
  }
  return p;
}

}  // namespace taper
