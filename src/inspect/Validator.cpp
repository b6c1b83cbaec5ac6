// SPDX-License-Identifier: Apache-2.0
#include "inspect/Validator.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "checkpoint/StateFile.hpp"
#include "io/Hdf5File.hpp"
#include "profile/ProfileFile.hpp"
#include "results/FileSchema.hpp"
#include "results/IterationName.hpp"
#include "results/MetricsLog.hpp"
#include "results/RolloutFile.hpp"
#include "results/RolloutFolder.hpp"
#include "results/SchemaCheck.hpp"
#include "results/SchemaProcess.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

using LengthsByIteration = std::map<std::int64_t, std::vector<std::int32_t>>;

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

class ResultsValidator {
 public:
  explicit ResultsValidator(OpenedIn where) : where_(where) {}

  Validation take() { return std::move(found_); }

  // Of any format. False where it has faults.
  bool check_file(const fs::path& file) {
    const SchemaReport report = look_at(file);
    if (!is_right(file, report)) return false;
    if (report.format == rollout_schema().format &&
        !attempt(file, [&] { return fits_run(file, {}); }))
      return false;
    found_.good.push_back(path_text(file) + ": " + report.format + " " +
                          std::to_string(report.version) + ", " +
                          count_text(report.datasets, "dataset") + ": as in the schema");
    return true;
  }

  void check_checkpoint(const fs::path& directory) {
    const auto problems = CheckpointStore::problems(directory);
    append(found_.faults, problems);
    for (const char* name : {"state.h5", "critic/state.h5"})
      if (fs::exists(directory / name)) check_file(directory / name);
  }

  void check_run(const fs::path& directory) {
    const fs::path run = directory / "run.h5", log = directory / "metrics.jsonl";
    LengthsByIteration lengths;
    const bool is_good = fs::exists(run) && check_file(run);
    if (is_good) attempt(run, [&] { return read_lengths(run, lengths); });
    if (fs::exists(log))
      attempt(log, [&] {
        const auto records = read_metrics_log(log);
        found_.good.push_back(path_text(log) + ": " + count_text(std::ssize(records), "line"));
        return !is_good || compare_metrics(run, log, records);
      });
    check_rollouts(directory / "rollouts", lengths);
    for (const fs::path& checkpoint : CheckpointStore::list(directory / "checkpoints"))
      check_checkpoint(checkpoint);
  }

 private:
  static void append(std::vector<std::string>& list, const std::vector<std::string>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  void fault(const fs::path& file, const std::string& text) {
    found_.faults.push_back(path_text(file) + ": " + text);
  }

  // False where look says so, or cannot read.
  template <class Look>
  bool attempt(const fs::path& file, const Look& look) {
    try {
      return look();
    } catch (const Error& error) {
      const std::string text = error.what();
      if (text.find(file.string()) != std::string::npos)
        found_.faults.push_back(text);
      else
        fault(file, text);
      return false;
    }
  }

  SchemaReport look_at(const fs::path& file) const {
    return where_ == OpenedIn::kOwnProcess ? check_schema_apart(file) : check_schema(file);
  }

  bool is_right(const fs::path& file, const SchemaReport& report) {
    append(found_.faults, report.faults);
    append(found_.notes, report.notes);
    return report.faults.empty() &&
           attempt(file, [&] { return check_own_sums(file, report.format); });
  }

  bool check_own_sums(const fs::path& file, const std::string& format) {
    if (format == profile_schema().format) read_profile(file);  // compares the hash of its content
    if (format != state_schema().format) return true;
    const auto damage = state_damage(file);
    for (const std::string& line : damage) fault(file, line);
    return damage.empty();
  }

  bool read_lengths(const fs::path& run, LengthsByIteration& lengths) {
    const Hdf5File file = Hdf5File::open_read(run);
    if (!file.exists("/rollout/step")) return true;
    const auto steps = file.read<std::int64_t>("/rollout/step").values;
    const auto table = file.read<std::int32_t>("/rollout/response_length");
    const auto samples = table.dims.at(1);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto begin = table.values.begin() + static_cast<std::int64_t>(i) * samples;
      lengths[steps[i]].assign(begin, std::find(begin, begin + samples, -1));
    }
    return true;
  }

  // run.h5 may be some seconds behind the log, but what it has is the same.
  bool compare_metrics(const fs::path& run, const fs::path& log,
                       const std::vector<MetricsRecord>& records) {
    const Hdf5File file = Hdf5File::open_read(run);
    std::vector<std::int64_t> steps;
    if (file.exists("/metrics/step")) steps = file.read<std::int64_t>("/metrics/step").values;
    std::map<std::string, std::map<std::int64_t, double>> logged;
    for (const MetricsRecord& record : records)
      for (const auto& [name, value] : record.values) logged[name][record.iteration] = value;
    bool is_same = true;
    for (const auto& [name, values] : logged) {
      const auto problem = difference(file, name, values, steps);
      if (!problem) continue;
      fault(run, "/metrics/" + name + " " + *problem + " in " + path_text(log) +
                     "; taper inspect --repair writes it anew");
      is_same = false;
    }
    return is_same;
  }

  static std::optional<std::string> difference(const Hdf5File& file, const std::string& name,
                                               const std::map<std::int64_t, double>& logged,
                                               const std::vector<std::int64_t>& steps) {
    const std::int64_t last = steps.empty() ? 0 : steps.back();
    if (!file.exists("/metrics/" + name)) {
      if (steps.empty() || logged.begin()->first > last) return std::nullopt;  // not yet
      return "is missing, but has values from iteration " + std::to_string(logged.begin()->first) +
             " on";
    }
    const auto values = file.read<double>("/metrics/" + name).values;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto at = logged.find(steps[i]);
      // A line of an evaluation behind the last iteration may be newer than run.h5.
      if (at == logged.end() || same(at->second, values[i]) ||
          (steps[i] == last && std::isnan(values[i])))
        continue;
      return format_text("is %g in iteration %lld, but %g", values[i],
                         static_cast<long long>(steps[i]), at->second);
    }
    return std::nullopt;
  }

  // One line for all that are right: there may be thousands.
  void check_rollouts(const fs::path& directory, const LengthsByIteration& lengths) {
    std::vector<std::int64_t> right;
    for (const fs::path& file : rollout_files(directory)) {
      const SchemaReport report = look_at(file);
      if (is_right(file, report) && attempt(file, [&] { return fits_run(file, lengths); }))
        right.push_back(*iteration_of_name(file.stem().string()));
    }
    if (right.empty()) return;
    found_.good.push_back(path_text(directory) + ": " + count_text(std::ssize(right), "file") +
                          " of " + rollout_schema().format + " " +
                          std::to_string(rollout_schema().version) + ", iterations " +
                          std::to_string(right.front()) + " to " + std::to_string(right.back()) +
                          ": as in the schema");
  }

  bool fits_run(const fs::path& file, const LengthsByIteration& lengths) {
    const RolloutSet set = read_rollouts(file);
    const auto named = iteration_of_name(file.stem().string());
    if (named && *named != set.iteration) {
      fault(file, "is of iteration " + std::to_string(set.iteration) + ", not that of its name");
      return false;
    }
    const auto known = lengths.find(set.iteration);
    if (known == lengths.end()) return true;
    std::vector<std::int32_t> own;
    for (const RolloutRecord& record : set.records) own.push_back(record.response_length());
    if (own == known->second) return true;
    fault(file, "/response_length is not the row of iteration " + std::to_string(set.iteration) +
                    " in /rollout/response_length of run.h5");
    return false;
  }

  OpenedIn where_;
  Validation found_;
};

}  // namespace

Validation validate_results(const fs::path& path, OpenedIn where) {
  TAPER_VALIDATE(fs::exists(path), path_text(path) << " does not exist; " << path_advice(path));
  ResultsValidator validator(where);
  if (!fs::is_directory(path)) {
    validator.check_file(path);
  } else if (CheckpointStore::is_checkpoint(path)) {
    validator.check_checkpoint(path);
  } else {
    TAPER_VALIDATE(fs::exists(path / "run.h5") || fs::exists(path / "metrics.jsonl"),
                   path_text(path)
                       << " has nothing to validate (no run.h5, metrics.jsonl or manifest.json)");
    validator.check_run(path);
  }
  return validator.take();
}

}  // namespace taper
