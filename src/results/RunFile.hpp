// SPDX-License-Identifier: Apache-2.0
//
// run.h5, what a run did, for people and scripts. Small: kept in memory, built anew in memory at
// each save and renamed into place, so that a reader at any moment finds a whole file. For one rank
// only.
//
//   /config                   text of the parameters, defaults included
//   /build, /machine          attributes
//   /metrics/<name>           (iterations) f64, NaN if not measured; scale /metrics/step
//   /timing/<phase>           (iterations, 3) f64 seconds: min, mean, max over ranks; scale
//                             /timing/step
//   /rollout/response_length  (iterations, samples) i32, -1 if fewer samples; scale
//                             /rollout/step
//   /<table>/<column>         (records) i64, f64 or text, e.g. decisions of the planner; scale
//                             /<table>/step
//
// Slashes in names make nested groups.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/Hdf5File.hpp"
#include "results/MetricsLog.hpp"
#include "results/RecordRows.hpp"
#include "results/detail/StepTable.hpp"

namespace taper {

// Seconds of one phase of an iteration, over ranks.
struct PhaseTiming {
  std::string phase;
  double min = 0;
  double mean = 0;
  double max = 0;
};

class RunFile {
 public:
  static constexpr int kFormatVersion = 2;
  static constexpr int kOldestVersion = 1;  // that can be loaded

  // A new, empty run; nothing is written yet.
  explicit RunFile(std::filesystem::path path);
  // What a file holds, to go on from there. Records of an older version are brought to the types of
  // today, so that the next save writes all of them alike.
  static RunFile load(const std::filesystem::path& path);
  // The run file with its metrics taken from the log of record; all else from the file, if that
  // can still be read.
  static RunFile rebuild_from(const std::filesystem::path& path,
                              const std::filesystem::path& metrics_log);

  void set_config(std::string text) { config_ = std::move(text); }
  // Facts of the machine and the job, e.g. "ranks", "64", instead of those so far; `host` and
  // `hardware_threads` are those of this process.
  void set_machine(std::map<std::string, std::string> facts);
  // One of them; empty if it is not known.
  std::string machine(const std::string& name) const {
    const auto found = machine_.find(name);
    return found == machine_.end() ? "" : found->second;
  }
  // What a dataset means that MetricTable.hpp does not list, by its full path
  // ("/metrics/actor/loss").
  void describe(const std::string& dataset, std::string units, std::string description);

  // The values of an iteration may come in several calls. Names must not collide ("a" and "a/b", or
  // "step").
  void add_metrics(std::int64_t iteration, const MetricValues& values);
  void add_timing(std::int64_t iteration, const PhaseTiming& timing);
  void add_lengths(std::int64_t iteration, std::span<const int> lengths);
  // Of the responses of each iteration, by prompt and sample; iterations ascend.
  const std::vector<std::pair<std::int64_t, std::vector<std::int32_t>>>& lengths() const {
    return lengths_;
  }
  // One more row of a table of records; an iteration may have any number of them.
  void add_record(const std::string& table, std::int64_t iteration, const RecordRow& row);

  // Drops all rows beyond iteration, for a run resumed from there.
  void truncate_after(std::int64_t iteration);

  void save();
  // Saves if the last save is at least so long ago, and so long that saving takes no more than
  // kMostShare of the time; says whether it did.
  static constexpr double kMostShare = 0.005;
  bool save_if_due(double seconds);

 private:
  struct Meaning {
    std::string units, description;
  };

  // Registers the path of a dataset; throws if it cannot stand beside the others.
  void claim(const std::string& group, const std::string& name);
  DatasetOptions options_for(const std::string& dataset) const;
  void write_facts(Hdf5File& file) const;
  void write_table(Hdf5File& file, const std::string& group, const detail::StepTable& table) const;
  void write_records(Hdf5File& file, const std::string& group, const RecordRows& rows) const;
  void write_lengths(Hdf5File& file) const;
  void write_steps(Hdf5File& file, const std::string& group,
                   const std::vector<std::int64_t>& steps) const;
  void load_facts(const Hdf5File& file);
  std::vector<std::string> load_columns(const Hdf5File& file, const std::string& group);
  void load_table(const Hdf5File& file, const std::string& group, detail::StepTable& table);
  void load_records(const Hdf5File& file, const std::string& group, RecordRows& rows);
  void load_lengths(const Hdf5File& file);

  std::filesystem::path path_;
  std::string created_;  // UTC, ISO 8601
  std::string config_;
  std::map<std::string, std::string> machine_;
  std::map<std::string, Meaning> meanings_;
  detail::StepTable metrics_;
  detail::StepTable timing_{3};
  std::map<std::string, RecordRows> records_;
  std::vector<std::pair<std::int64_t, std::vector<std::int32_t>>> lengths_;
  std::set<std::string> claimed_;                               // full paths of all datasets
  std::optional<std::chrono::steady_clock::time_point> saved_;  // the end of the last save
  double save_s_ = 0.0;                                         // what it took
};

}  // namespace taper
