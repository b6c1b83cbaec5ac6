// SPDX-License-Identifier: Apache-2.0
#include "inspect/Validator.hpp"

#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "checkpoint/StateFile.hpp"
#include "io/Hdf5File.hpp"
#include "profile/ProfileFile.hpp"
#include "results/FileSchema.hpp"
#include "results/MetricsLog.hpp"
#include "results/RolloutFile.hpp"
#include "results/RunDirectory.hpp"
#include "results/RunFile.hpp"
#include "results/SchemaCheck.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

using Series = std::map<std::int64_t, double>;                      // by iteration
using Lengths = std::map<std::int64_t, std::vector<std::int32_t>>;  // the same

class ResultsValidator {
 public:
  Validation found;

  // False if it has faults.
  bool check_file(const fs::path& file) {
    const std::string what = look_at(file, {});
    if (!what.empty()) tell(found.good, file, what + ": as in the schema");
    return !what.empty();
  }

  void check_checkpoint(const fs::path& directory) {
    append(found.faults, CheckpointStore::problems(directory));
    const CheckpointDirectory checkpoint(directory);
    for (const fs::path& state : checkpoint.states()) check_file(state);
  }

  void check_run(const RunDirectory& directory) {
    const fs::path run = directory.run_file(), log = directory.metrics();
    const bool is_good = fs::exists(run) && check_file(run);
    Lengths lengths;
    if (is_good)
      attempt(run, [&] {
        const RunFile file = RunFile::load(run);
        lengths.insert(file.lengths().begin(), file.lengths().end());
      });
    if (fs::exists(log))
      attempt(log, [&] {
        const auto records = read_metrics_log(log);
        tell(found.good, log, count_text(std::ssize(records), "line"));
        if (is_good) compare_metrics(run, log, records);
      });
    std::int64_t right = 0;  // one line for all of them: there may be thousands
    for (const fs::path& file : rollout_files(directory.rollouts()))
      if (!look_at(file, lengths).empty()) ++right;
    if (right > 0)
      tell(found.good, directory.rollouts(),
           count_text(right, "file") + " of " + rollout_schema().format + ": as in the schema");
    for (const fs::path& checkpoint : CheckpointStore::list(directory.checkpoints()))
      check_checkpoint(checkpoint);
  }

 private:
  static void append(std::vector<std::string>& list, const std::vector<std::string>& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  static void tell(std::vector<std::string>& list, const fs::path& path, const std::string& text) {
    list.push_back(path_text(path) + ": " + text);
  }

  template <class Look>
  void attempt(const fs::path& file, const Look& look) {
    try {
      look();
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool is_named = text.find(file.string()) != std::string::npos;
      found.faults.push_back(is_named ? text : path_text(file) + ": " + text);
    }
  }

  // What a file of any format is: "taper-run 1, 12 datasets"; empty if it has faults.
  std::string look_at(const fs::path& file, const Lengths& lengths) {
    const std::size_t before = found.faults.size();
    const SchemaReport report = check_schema(file);
    append(found.faults, report.faults);
    append(found.notes, report.notes);
    if (report.faults.empty())
      attempt(file, [&] {
        if (report.format == profile_schema().format) read_profile(file);  // compares its hash
        if (report.format == rollout_schema().format) compare_rollouts(file, lengths);
        if (report.format == state_schema().format)
          for (const std::string& damage : state_damage(file)) tell(found.faults, file, damage);
      });
    if (found.faults.size() > before) return "";
    return report.format + " " + std::to_string(report.version) + ", " +
           count_text(report.datasets, "dataset");
  }

  // run.h5 may be some seconds behind the log, but what it has is the same.
  void compare_metrics(const fs::path& run, const fs::path& log,
                       const std::vector<MetricsRecord>& records) {
    const Hdf5File file = Hdf5File::open_read(run);
    if (!file.exists("/metrics/step")) return;
    const auto steps = file.read<std::int64_t>("/metrics/step").values;
    std::map<std::string, Series> logged;
    for (const MetricsRecord& record : records)
      for (const auto& [name, value] : record.values) logged[name][record.iteration] = value;
    for (const auto& [name, series] : logged) {
      const std::string dataset = "/metrics/" + name;
      std::string problem;
      if (file.exists(dataset))
        problem = difference(file.read<double>(dataset).values, steps, series);
      else if (!steps.empty() && series.begin()->first <= steps.back())
        problem = format_text("is missing, but has values from iteration %lld on",
                              static_cast<long long>(series.begin()->first));
      if (!problem.empty())
        tell(found.faults, run,
             dataset + " " + problem + " in " + path_text(log) +
                 "; taper inspect --repair rebuilds it");
    }
  }

  static std::string difference(const std::vector<double>& stored,
                                const std::vector<std::int64_t>& steps, const Series& logged) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto at = logged.find(steps[i]);
      if (at == logged.end() || at->second == stored[i]) continue;
      // A line of an evaluation after the last iteration may be newer than run.h5.
      if (std::isnan(stored[i]) && (std::isnan(at->second) || i + 1 == steps.size())) continue;
      return format_text("is %g in iteration %lld, but %g", stored[i],
                         static_cast<long long>(steps[i]), at->second);
    }
    return "";
  }

  void compare_rollouts(const fs::path& file, const Lengths& lengths) {
    const RolloutSet set = read_rollouts(file);
    const std::string iteration = std::to_string(set.iteration);
    if (iteration_of_name(file.stem().string()).value_or(set.iteration) != set.iteration)
      tell(found.faults, file, "is of iteration " + iteration + ", not that of its name");
    const auto known = lengths.find(set.iteration);
    std::vector<std::int32_t> own;
    for (const RolloutRecord& record : set.records) own.push_back(record.response_length());
    if (known != lengths.end() && own != known->second)
      tell(found.faults, file,
           "/response_length is not the row of iteration " + iteration +
               " in /rollout/response_length of run.h5");
  }
};

}  // namespace

Validation validate_results(const fs::path& path) {
  TAPER_VALIDATE(fs::exists(path), path_text(path) << " does not exist; " << path_advice(path));
  ResultsValidator validator;
  if (!fs::is_directory(path)) {
    validator.check_file(path);
  } else if (CheckpointStore::is_checkpoint(path)) {
    validator.check_checkpoint(path);
  } else {
    const RunDirectory run(path);
    TAPER_VALIDATE(fs::exists(run.run_file()) || fs::exists(run.metrics()),
                   path_text(path)
                       << " has nothing to validate (no run.h5, metrics.jsonl or manifest.json)");
    validator.check_run(run);
  }
  return std::move(validator.found);
}

}  // namespace taper
