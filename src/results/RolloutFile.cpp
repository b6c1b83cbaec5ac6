// SPDX-License-Identifier: Apache-2.0
#include "results/RolloutFile.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <sstream>
#include <system_error>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "base/Version.hpp"
#include "io/AtomicFile.hpp"
#include "io/Hdf5File.hpp"
#include "io/MpiCall.hpp"
#include "results/FileSchema.hpp"
#include "results/detail/RolloutExchange.hpp"

namespace taper {

namespace {

constexpr std::int64_t kSpanColumns = 3;

std::string problem_of(const RolloutRecord& record, std::size_t components) {
  std::ostringstream text;
  text << "rollouts: sample " << record.id.sample << " of group " << record.id.prompt << ": ";
  const auto start = text.str().size();
  if (record.prompt_length < 0 || record.response_length() < 0) {
    text << record.tokens.size() << " tokens with a prompt of " << record.prompt_length;
  } else if (static_cast<std::int32_t>(record.log_probs.size()) != record.response_length()) {
    text << record.log_probs.size() << " log-probs for " << record.response_length()
         << " response tokens";
  } else if (!record.kept_mass.empty() && record.kept_mass.size() != record.log_probs.size()) {
    text << record.kept_mass.size() << " kept masses for " << record.response_length()
         << " response tokens";
  } else if (!record.values.empty() && record.values.size() != record.log_probs.size()) {
    text << record.values.size() << " values for " << record.response_length()
         << " response tokens";
  } else if (record.rewards.size() != components) {
    text << record.rewards.size() << " rewards for " << components << " components";
  } else if (record.finish < FinishReason::kEos || record.finish > FinishReason::kAbort) {
    text << "finish code " << static_cast<int>(record.finish);
  }
  return text.str().size() == start ? "" : text.str();
}

// What all rows of this rank contribute to a ragged array.
template <class T>
struct Ragged {
  std::vector<T> values;
  std::vector<std::int64_t> ends;  // in units of one item, relative to this rank
  std::int64_t width = 1;          // numbers per item
  std::int64_t items() const { return ends.empty() ? 0 : ends.back(); }
};

template <class T, class Get>
Ragged<T> collect(const std::vector<RolloutRecord>& records, std::int64_t width, Get&& get) {
  Ragged<T> ragged;
  ragged.width = width;
  for (const auto& record : records) {
    get(record, ragged.values);
    ragged.ends.push_back(static_cast<std::int64_t>(ragged.values.size()) / width);
  }
  return ragged;
}

// Writes the share of this rank into a file all ranks have open.
class ShareWriter {
 public:
  ShareWriter(Hdf5File& file, MPI_Comm comm, const detail::RolloutShare& share, int compression)
      : file_(file), comm_(comm), share_(share), compression_(compression) {}

  template <class T, class Get>
  void column(const std::string& name, Get&& get) {
    std::vector<T> values;
    for (const auto& record : share_.records) values.push_back(get(record));
    file_.write_slab<T>(name, {share_.total_rows}, {share_.first_row}, values,
                        {static_cast<std::int64_t>(values.size())}, options(name));
  }

  void rewards(std::int64_t components) {
    std::vector<float> values;
    for (const auto& record : share_.records)
      values.insert(values.end(), record.rewards.begin(), record.rewards.end());
    file_.write_slab<float>("/rewards", {share_.total_rows, components}, {share_.first_row, 0},
                            values, {static_cast<std::int64_t>(share_.records.size()), components},
                            options("/rewards"));
  }

  // Whether a writer says yes.
  bool anyone(bool mine) const {
    int own = mine ? 1 : 0, all = 0;
    TAPER_IO_MPI_CALL(MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MAX, comm_));
    return all != 0;
  }

  // <name>/values and <name>/offsets.
  template <class T>
  void ragged(const std::string& name, const Ragged<T>& mine) {
    std::vector<std::int64_t> items(static_cast<std::size_t>(detail::comm_size(comm_)));
    const std::int64_t own = mine.items();
    TAPER_IO_MPI_CALL(MPI_Allgather(&own, 1, MPI_INT64_T, items.data(), 1, MPI_INT64_T, comm_));
    const auto rank = static_cast<std::size_t>(detail::comm_rank(comm_));
    std::int64_t before = 0, total = 0;
    for (std::size_t r = 0; r < items.size(); ++r) {
      if (r < rank) before += items[r];
      total += items[r];
    }
    Dims global = {total}, offset = {before}, part = {own};
    if (mine.width > 1) {
      global.push_back(mine.width);
      offset.push_back(0);
      part.push_back(mine.width);
    }
    file_.write_slab<T>(name + "/values", global, offset, mine.values, part,
                        options(name + "/values"));

    std::vector<std::int64_t> starts;
    for (std::size_t i = 0; i < mine.ends.size(); ++i)
      starts.push_back(before + (i == 0 ? 0 : mine.ends[i - 1]));
    if (rank + 1 == items.size()) starts.push_back(total);
    file_.write_slab<std::int64_t>(name + "/offsets", {share_.total_rows + 1}, {share_.first_row},
                                   starts, {static_cast<std::int64_t>(starts.size())},
                                   options(name + "/offsets"));
  }

 private:
  DatasetOptions options(const std::string& dataset) const {
    return rollout_schema().options_of(dataset, compression_);
  }

  Hdf5File& file_;
  MPI_Comm comm_;
  const detail::RolloutShare& share_;
  int compression_;
};

void write_facts(Hdf5File& file, const RolloutFileOptions& options) {
  write_format(file, rollout_schema());
  file.set_attribute("/", "git_hash", build_info().git_hash);
  file.set_attribute("/", "iteration", options.iteration);
  file.write_strings("/reward_names", options.reward_names,
                     rollout_schema().options_of("/reward_names"));
}

void write_columns(ShareWriter& writer, const RolloutFileOptions& options) {
  writer.column<std::int64_t>("/group", [](const RolloutRecord& r) { return r.id.prompt; });
  if (!options.stream.empty())
    writer.column<std::int64_t>("/stream_index", [&](const RolloutRecord& r) {
      return options.stream.at(static_cast<std::size_t>(r.id.prompt));
    });
  writer.column<std::int32_t>("/sample", [](const RolloutRecord& r) { return r.id.sample; });
  writer.column<std::int32_t>("/prompt_length",
                              [](const RolloutRecord& r) { return r.prompt_length; });
  writer.column<std::int32_t>("/response_length",
                              [](const RolloutRecord& r) { return r.response_length(); });
  writer.column<double>("/advantage", [](const RolloutRecord& r) { return r.advantage; });
  writer.column<std::int8_t>(
      "/finish", [](const RolloutRecord& r) { return static_cast<std::int8_t>(r.finish); });
}

template <class T>
void append(std::vector<T>& out, const std::vector<T>& more) {
  out.insert(out.end(), more.begin(), more.end());
}

// Figures of response tokens that not every run has.
struct OptionalArray {
  const char* name;
  std::vector<float> RolloutRecord::*list;
};

constexpr std::array<OptionalArray, 2> kOptionalArrays{
    {{"/kept_mass", &RolloutRecord::kept_mass}, {"/values", &RolloutRecord::values}}};

void write_ragged(ShareWriter& writer, const std::vector<RolloutRecord>& records) {
  writer.ragged("/tokens", collect<std::int32_t>(records, 1, [](const auto& r, auto& out) {
                  append(out, r.tokens);
                }));
  writer.ragged("/log_probs", collect<float>(records, 1, [](const auto& r, auto& out) {
                  append(out, r.log_probs);
                }));
  for (const OptionalArray& array : kOptionalArrays) {
    const auto ragged =
        collect<float>(records, 1, [&](const auto& r, auto& out) { append(out, r.*array.list); });
    if (writer.anyone(!ragged.values.empty())) writer.ragged(array.name, ragged);
  }
  writer.ragged("/layout",
                collect<std::int32_t>(records, kSpanColumns, [](const auto& r, auto& out) {
                  for (const auto& span : r.layout)
                    out.insert(out.end(), {span.first_token, span.tp, span.replica});
                }));
}

// The ranks that write, as a communicator of their own; null on the others.
class Writers {
 public:
  Writers(MPI_Comm all, int writer) {
    const int color = writer >= 0 ? 0 : MPI_UNDEFINED;
    TAPER_IO_MPI_CALL(MPI_Comm_split(all, color, writer, &comm_));
  }
  // Collective; but while an exception passes, the other writers may be inside HDF5 and never come.
  ~Writers() {
    if (comm_ != MPI_COMM_NULL && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
  }
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;
  MPI_Comm comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Runs action; no side file stays if it throws.
template <class Action>
void or_remove(const std::filesystem::path& part, Action&& action) {
  try {
    action();
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw;
  }
}

// Collective over writers.
void write_share(const std::filesystem::path& part, MPI_Comm writers,
                 const detail::RolloutShare& share, const RolloutFileOptions& options) {
  Hdf5File file =
      share.writers == 1 ? Hdf5File::create(part) : Hdf5File::create_parallel(part, writers);
  write_facts(file, options);
  ShareWriter writer(file, writers, share, options.compression);
  write_columns(writer, options);
  writer.rewards(static_cast<std::int64_t>(options.reward_names.size()));
  write_ragged(writer, share.records);
  file.close();
}

// A ragged array of a file, checked, cut into rows by get(row, values of it).
template <class T, class Put>
void read_ragged(const Hdf5File& file, const std::string& name, std::size_t rows, std::size_t width,
                 Put&& put) {
  const auto values = file.read<T>(name + "/values").values;
  const auto offsets = file.read<std::int64_t>(name + "/offsets").values;
  const bool good = offsets.size() == rows + 1 && offsets.front() == 0 &&
                    std::is_sorted(offsets.begin(), offsets.end()) &&
                    static_cast<std::size_t>(offsets.back()) * width == values.size();
  TAPER_VALIDATE(good, file.path() << ": " << name << "/offsets do not fit " << name
                                   << "/values (damaged file?)");
  for (std::size_t i = 0; i < rows; ++i) {
    const auto begin = values.data() + static_cast<std::size_t>(offsets[i]) * width;
    put(i,
        std::span<const T>(begin, static_cast<std::size_t>(offsets[i + 1] - offsets[i]) * width));
  }
}

template <class T>
std::vector<T> read_column(const Hdf5File& file, const std::string& name, std::size_t rows) {
  auto values = file.read<T>(name).values;
  TAPER_VALIDATE(values.size() == rows, file.path()
                                            << ": " << name << " has " << values.size()
                                            << " values (" << rows << " samples); damaged file?");
  return values;
}

}  // namespace

std::vector<std::string> RolloutFileOptions::problems() const {
  std::vector<std::string> found;
  if (compression < 0 || compression > 9) found.push_back("compression must be 0 to 9");
  if (bytes_per_writer < 1) found.push_back("bytes_per_writer must be positive");
  return found;
}

void write_rollouts(const std::filesystem::path& path, MPI_Comm comm,
                    std::span<const RolloutRecord> mine, const RolloutFileOptions& options) {
  TAPER_VALIDATE(options.problems().empty(), path_text(path) << ": " << join(options.problems()));
  std::string problem;
  for (const auto& record : mine) {
    if (problem.empty()) problem = problem_of(record, options.reward_names.size());
  }
  detail::throw_together(comm, problem);
  const auto share = detail::to_global_order(comm, mine, options.bytes_per_writer);

  const bool first = detail::comm_rank(comm) == 0;  // always a writer
  const auto part = part_path(path);
  const Writers writers(comm, share.writer);
  detail::do_together(comm, [&] {
    if (first && path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  });
  const auto write = [&] {
    if (share.writer >= 0)
      or_remove(part, [&] { write_share(part, writers.comm(), share, options); });
  };
  if (share.writers == 1) {
    detail::do_together(comm, write);
  } else {
    // One of several writers may fail alone. The others are then inside HDF5 and would never come
    // to a meeting: the exception must end the program.
    write();
    detail::throw_together(comm, "");
  }
  detail::do_together(comm, [&] {
    if (first) or_remove(part, [&] { commit_file(part, path); });
  });
}

RolloutSet read_rollouts(const std::filesystem::path& path) {
  const Hdf5File file = Hdf5File::open_read(path);
  require_format(file, rollout_schema());
  RolloutSet set{file.int_attribute("/", "iteration"), file.read_strings("/reward_names"), {}};
  set.has_rounds = file.exists("/stream_index");
  const auto group = file.read<std::int64_t>("/group").values;
  const auto rows = group.size();
  const auto sample = read_column<std::int32_t>(file, "/sample", rows);
  const auto prompt_length = read_column<std::int32_t>(file, "/prompt_length", rows);
  const auto response_length = read_column<std::int32_t>(file, "/response_length", rows);
  const auto advantage = read_column<double>(file, "/advantage", rows);
  const auto finish = read_column<std::int8_t>(file, "/finish", rows);
  const auto components = set.reward_names.size();
  const auto rewards = read_column<float>(file, "/rewards", rows * components);
  set.records.resize(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    auto& record = set.records[i];
    record.id.prompt = group[i];
    record.id.sample = sample[i];
    record.prompt_length = prompt_length[i];
    record.advantage = advantage[i];
    record.finish = static_cast<FinishReason>(finish[i]);
    const auto own = rewards.begin() + static_cast<std::ptrdiff_t>(i * components);
    record.rewards.assign(own, own + static_cast<std::ptrdiff_t>(components));
  }
  auto& records = set.records;
  read_ragged<std::int32_t>(file, "/tokens", rows, 1,
                            [&](auto i, auto v) { records[i].tokens.assign(v.begin(), v.end()); });
  read_ragged<float>(file, "/log_probs", rows, 1,
                     [&](auto i, auto v) { records[i].log_probs.assign(v.begin(), v.end()); });
  for (const OptionalArray& array : kOptionalArrays)
    if (file.exists(array.name))
      read_ragged<float>(file, array.name, rows, 1, [&](auto i, auto v) {
        (records[i].*array.list).assign(v.begin(), v.end());
      });
  read_ragged<std::int32_t>(file, "/layout", rows, kSpanColumns, [&](auto i, auto v) {
    for (std::size_t k = 0; k < v.size(); k += kSpanColumns)
      records[i].layout.push_back({v[k], v[k + 1], v[k + 2]});
  });
  for (std::size_t i = 0; i < rows; ++i) {
    const auto problem = problem_of(records[i], components);
    TAPER_VALIDATE(problem.empty(), path_text(path) << ": " << problem << " (damaged file?)");
    TAPER_VALIDATE(records[i].response_length() == response_length[i],
                   path_text(path) << ": /response_length of sample " << i << " is "
                                   << response_length[i] << " (there are "
                                   << records[i].response_length() << " tokens); damaged file?");
  }
  return set;
}

}  // namespace taper
