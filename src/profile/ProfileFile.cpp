// SPDX-License-Identifier: Apache-2.0
#include "profile/ProfileFile.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "io/AtomicFile.hpp"
#include "io/Hdf5File.hpp"
#include "planner/PassModel.hpp"
#include "profile/RunIdentity.hpp"
#include "results/FileSchema.hpp"

namespace taper {
namespace {

// One column of a table of records.
template <class Row, class T>
struct Column {
  const char* name;
  T Row::*member;
};

template <class Row, class Visit>
void for_columns(const Visit& visit) {
  const auto column = [&]<class T>(const char* name, T Row::*member) {
    visit(Column<Row, T>{name, member});
  };
  if constexpr (std::is_same_v<Row, StepSample>) {
    column("tp", &Row::tp);
    column("pair", &Row::pair);
    column("new_tokens", &Row::new_tokens);
    column("sequences", &Row::sequences);
    column("context", &Row::context);
    column("time_ns", &Row::time_ns);
    column("spread_ns", &Row::spread_ns);
    column("repeats", &Row::repeats);
  } else if constexpr (std::is_same_v<Row, PassSample>) {
    column("kind", &Row::kind);
    column("tp", &Row::tp);
    column("pair", &Row::pair);
    column("replicas", &Row::replicas);
    column("rows", &Row::rows);
    column("targets", &Row::targets);
    column("length", &Row::length);
    column("time_ns", &Row::time_ns);
    column("spread_ns", &Row::spread_ns);
    column("repeats", &Row::repeats);
  } else if constexpr (std::is_same_v<Row, MoveCost>) {
    column("pair", &Row::pair);
    column("latency_ns", &Row::latency_ns);
    column("ps_per_byte", &Row::ps_per_byte);
  } else if constexpr (std::is_same_v<Row, RendezvousCost>) {
    column("ranks", &Row::ranks);
    column("ns", &Row::ns);
  } else {
    static_assert(std::is_same_v<Row, FitError>);
    column("tp", &Row::tp);
    column("pair", &Row::pair);
    column("p50", &Row::p50);
    column("p90", &Row::p90);
    column("p95", &Row::p95);
    column("max", &Row::max);
  }
}

template <class T>
using Stored = std::conditional_t<std::is_same_v<T, std::int64_t>, std::int64_t, std::int32_t>;

template <class Row>
void write_table(Hdf5File& file, const std::string& group, const std::vector<Row>& rows) {
  for_columns<Row>([&]<class T>(const Column<Row, T>& column) {
    std::vector<Stored<T>> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(static_cast<Stored<T>>(row.*column.member));
    const std::string name = group + "/" + column.name;
    file.write(name, values, profile_schema().options_of(name));
  });
}

template <class Row>
std::vector<Row> read_table(const Hdf5File& file, const std::string& group) {
  std::vector<Row> rows;
  bool first = true;
  for_columns<Row>([&]<class T>(const Column<Row, T>& column) {
    const std::string name = group + "/" + column.name;
    const auto values = file.read<Stored<T>>(name).values;
    if (std::exchange(first, false)) rows.resize(values.size());
    TAPER_VALIDATE(values.size() == rows.size(), file.path()
                                                     << ": '" << name << "' has " << values.size()
                                                     << " values (not " << rows.size() << ")");
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i].*column.member = static_cast<T>(values[i]);
  });
  return rows;
}

LatencyProfile read_content(const Hdf5File& file) {
  LatencyProfile p;
  for (const auto& [part, facts] : kIdentityParts) {
    const std::string group = std::string("/identity/") + part;
    for (const auto& name : file.attribute_names(group))
      (p.identity.*facts)[name] = file.string_attribute(group, name);
  }
  p.ranks = static_cast<std::int32_t>(file.int_attribute("/", "ranks"));
  p.ranks_per_node = static_cast<std::int32_t>(file.int_attribute("/", "ranks_per_node"));
  if (file.has_attribute("/", "measured_percent"))
    p.measured_percent = static_cast<std::int32_t>(file.int_attribute("/", "measured_percent"));
  p.kv_bytes_per_position = file.int_attribute("/switching", "kv_bytes_per_position");
  p.block_size = static_cast<std::int32_t>(file.int_attribute("/switching", "block_size"));
  p.groups_ns = file.int_attribute("/switching", "groups_ns");
  p.weights_ns = file.int_attribute("/switching", "weights_ns");
  p.graphs_ns = file.int_attribute("/switching", "graphs_ns");
  p.steps = read_table<StepSample>(file, "/steps");
  if (file.exists("/verify")) p.verify = read_table<StepSample>(file, "/verify");
  if (file.exists("/passes")) p.passes = read_table<PassSample>(file, "/passes");
  p.moves = read_table<MoveCost>(file, "/switching/moves");
  p.rendezvous = read_table<RendezvousCost>(file, "/switching/rendezvous");
  p.fit_errors = read_table<FitError>(file, "/fit_errors");
  p.repeat_noise = read_table<FitError>(file, "/repeat_noise");
  return p;
}

}  // namespace

void write_profile(const std::filesystem::path& path, const LatencyProfile& p) {
  require_no_problems(p.problems(), path_text(path) + " is not written", ExitCode::kFailure);
  Hdf5File file = Hdf5File::create(part_path(path));
  write_format(file, profile_schema());
  file.set_attribute("/", "ranks", p.ranks);
  file.set_attribute("/", "ranks_per_node", p.ranks_per_node);
  file.set_attribute("/", "measured_percent", p.measured_percent);
  for (const auto& [part, facts] : kIdentityParts) {
    const std::string group = std::string("/identity/") + part;
    file.create_group(group);
    for (const auto& [name, text] : p.identity.*facts) file.set_attribute(group, name, text);
  }
  write_table(file, "/steps", p.steps);
  if (!p.verify.empty()) write_table(file, "/verify", p.verify);
  if (!p.passes.empty()) write_table(file, "/passes", p.passes);
  write_table(file, "/switching/moves", p.moves);
  write_table(file, "/switching/rendezvous", p.rendezvous);
  write_table(file, "/fit_errors", p.fit_errors);
  write_table(file, "/repeat_noise", p.repeat_noise);
  file.set_attribute("/switching", "kv_bytes_per_position", p.kv_bytes_per_position);
  file.set_attribute("/switching", "block_size", p.block_size);
  file.set_attribute("/switching", "groups_ns", p.groups_ns);
  file.set_attribute("/switching", "weights_ns", p.weights_ns);
  file.set_attribute("/switching", "graphs_ns", p.graphs_ns);
  file.set_attribute("/", "content_hash", static_cast<std::int64_t>(content_hash(p)));
  file.close();
  commit_file(part_path(path), path);
}

namespace {

LatencyProfile read_checked(const std::filesystem::path& path) {
  const Hdf5File file = Hdf5File::open_read(path);
  require_format(file, profile_schema(), "measure it again: taper profile");
  LatencyProfile p = read_content(file);
  TAPER_VALIDATE(
      static_cast<std::int64_t>(content_hash(p)) == file.int_attribute("/", "content_hash"),
      path_text(path) << " is damaged (its checksum differs); measure it again: taper "
                         "profile");
  require_no_problems(p.problems(), path_text(path));
  // Files of earlier versions have them.
  std::erase_if(p.identity.transport,
                [](const auto& fact) { return is_harmless_setting(fact.first); });
  return p;
}

}  // namespace

LatencyProfile read_profile(const std::filesystem::path& path) {
  TAPER_VALIDATE(std::filesystem::exists(path),
                 "the profile " << path_text(path) << " does not exist; measure it: taper profile");
  try {
    return read_checked(path);
  } catch (const Error& e) {
    if (e.code() == ExitCode::kBadInput) throw;
    throw Error(ExitCode::kBadInput, std::string("the profile cannot be read: ") + e.what() +
                                         "; if the file is not complete, measure it again: "
                                         "taper profile");
  }
}

LatencyProfile read_matching_profile(const std::filesystem::path& path, const ProfileIdentity& here,
                                     const Ranks& ranks, const std::vector<int>& degrees) {
  LatencyProfile profile = read_profile(path);
  require_equal(ranks, path_text(path), std::to_string(content_hash(profile)));
  const ProfileMatch match = compare_identity(profile.identity, here);
  TAPER_VALIDATE(match.refusals.empty(),
                 path_text(path) << " is not valid for this run: " << join(match.refusals, "; ")
                                 << "; measure a profile here with taper profile");
  require_degrees(profile, degrees);
  if (ranks.rank() != 0) return profile;
  for (const auto& text : match.warnings) TAPER_WARN(path_text(path) << ": " << text);
  if (!profile.is_complete())
    TAPER_WARN(path_text(path) << " is " << completeness_problem(profile));
  if (const std::string noise = noise_problem(profile); !noise.empty())
    TAPER_WARN(path_text(path) << " is " << noise);
  return profile;
}

namespace {

double percent(std::int64_t millionths) {
  return static_cast<double>(millionths) * 1e-4;
}
double us(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-3;
}
double ms(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

// Points of a degree and class, and the range of its decode steps.
struct StepRange {
  int points = 0, decode = 0;
  std::int64_t least = 0, most = 0;  // ns
};

StepRange range_of(const LatencyProfile& p, int tp, PairClass pair) {
  StepRange range;
  for (const StepSample& s : p.steps) {
    if (s.tp != tp || s.pair != pair) continue;
    ++range.points;
    if (s.new_tokens != s.sequences) continue;
    range.least = range.decode == 0 ? s.time_ns : std::min(range.least, s.time_ns);
    range.most = std::max(range.most, s.time_ns);
    ++range.decode;
  }
  return range;
}

}  // namespace

std::string to_table(const LatencyProfile& p) {
  std::ostringstream out;
  out << "  measured: "
      << (p.is_complete()
              ? std::string("complete")
              : "incomplete, " + std::to_string(p.measured_percent) + " % of what was planned")
      << '\n';
  out << "  TP  group       points  decode steps, ms     error % 50/90   noise % 50/90\n";
  for (std::size_t i = 0; i < p.fit_errors.size(); ++i) {
    const FitError& e = p.fit_errors[i];
    const StepRange r = range_of(p, e.tp, e.pair);
    out << format_text("%4d  %-10s %7d  %8.3f - %-9.3f %8.2f /%6.2f", e.tp, to_string(e.pair),
                       r.points, ms(r.least), ms(r.most), percent(e.p50), percent(e.p90));
    if (i < p.repeat_noise.size())
      out << format_text(" %8.2f /%6.2f", percent(p.repeat_noise[i].p50),
                         percent(p.repeat_noise[i].p90));
    out << '\n';
  }
  if (!p.passes.empty()) {
    const PassModel model(p);
    const std::vector<double>& errors = model.errors();
    const auto at = [&](std::size_t percent) {
      return errors.empty() ? 0.0 : 100 * errors[(errors.size() - 1) * percent / 100];
    };
    out << format_text(
        "  passes and optimizer steps of training: %zu points, error %% 50/90 %.1f / %.1f\n",
        p.passes.size(), at(50), at(90));
  }
  for (const MoveCost& m : p.moves)
    out << format_text("  moving keys and values, %s: %.1f us and %.2f GB/s\n", to_string(m.pair),
                       us(m.latency_ns), 1e3 / std::max(1.0, static_cast<double>(m.ps_per_byte)));
  for (const RendezvousCost& r : p.rendezvous)
    out << format_text("  rendezvous of %d ranks: %.1f us\n", r.ranks, us(r.ns));
  out << format_text("  groups %.1f us, weights %.1f us, graphs %.1f us\n", us(p.groups_ns),
                     us(p.weights_ns), us(p.graphs_ns));
  return out.str();
}

std::string noise_problem(const LatencyProfile& p) {
  constexpr std::int64_t kQuiet = 50'000;  // millionths
  const auto worst = std::max_element(p.repeat_noise.begin(), p.repeat_noise.end(),
                                      [](const auto& a, const auto& b) { return a.p50 < b.p50; });
  if (worst == p.repeat_noise.end() || worst->p50 <= kQuiet) return "";
  return format_text(
      "noisy: at TP %d repeated measurements differ by %.1f %% in the median, so what a change of "
      "layout saves is predicted badly; repeat taper profile with --fresh when nothing else runs "
      "on "
      "these machines",
      worst->tp, percent(worst->p50));
}

std::string completeness_problem(const LatencyProfile& p) {
  if (p.is_complete()) return {};
  return "incomplete: the budget ended after " + std::to_string(p.measured_percent) +
         " % of the planned measurements, so layouts would be chosen by rough step times; repeat "
         "the same taper profile command without --budget: it resumes where it stopped";
}

}  // namespace taper
