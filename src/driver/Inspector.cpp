// SPDX-License-Identifier: Apache-2.0
#include "driver/Inspector.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include "base/Error.hpp"
#include "base/Text.hpp"
#include "driver/Checkpoint.hpp"
#include "driver/ProfileFile.hpp"
#include "driver/ProfileTable.hpp"
#include "driver/RolloutText.hpp"
#include "driver/RunIdentity.hpp"
#include "io/Hdf5File.hpp"
#include "io/Json.hpp"
#include "io/RunFile.hpp"
#include "model/HuggingFace.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownValues = 6;
constexpr std::size_t kShownText = 60;

std::string show(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}
std::string show(std::int64_t value) {
  return std::to_string(value);
}
std::string show(std::uint64_t value) {
  return std::to_string(value);
}

// The first line, cut; quoted as in JSON.
std::string show(const std::string& text) {
  std::string line = text.substr(0, std::min(text.find('\n'), kShownText));
  if (line.size() < text.size()) line += "...";
  return Json(line).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class T>
std::string show_values(const std::vector<T>& values) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(values.size(), kShownValues); ++i)
    words.push_back(show(values[i]));
  if (values.size() > kShownValues) words.push_back("...");
  return join(words);
}

// The stored type is not asked for: the first kind that holds it without loss is the right one.
template <class T>
bool try_numbers(const Hdf5File& file, const std::string& name, std::string& text,
                 std::vector<std::string>& problems) {
  try {
    text = show_values(file.read<T>(name).values);
    return true;
  } catch (const Error& e) {
    problems.emplace_back(e.what());
    return false;
  }
}

std::string show_dataset(const Hdf5File& file, const std::string& name, const Dims& dims) {
  std::string text;
  std::vector<std::string> problems;
  if (try_numbers<double>(file, name, text, problems) ||
      try_numbers<std::int64_t>(file, name, text, problems) ||
      try_numbers<std::uint64_t>(file, name, text, problems))
    return text;
  try {
    return dims.empty() ? show(file.read_string(name)) : show_values(file.read_strings(name));
  } catch (const Error& e) {
    problems.emplace_back(e.what());
  }
  TAPER_FAIL(ExitCode::kBadInput, name << " cannot be read: " << join(problems, "; "));
}

std::string show_attribute(const Hdf5File& file, const std::string& object,
                           const std::string& name) {
  try {
    return show(file.string_attribute(object, name));
  } catch (const Error&) {
  }
  try {
    return show(file.int_attribute(object, name));
  } catch (const Error&) {
  }
  return show(file.double_attribute(object, name));
}

// HDF5's own attributes of dimension scales say nothing to people.
bool is_bookkeeping(const std::string& attribute) {
  return attribute == "CLASS" || attribute == "NAME" || attribute == "REFERENCE_LIST" ||
         attribute == "DIMENSION_LIST" || attribute.starts_with("DIMENSION_LABELS");
}

void show_attributes(std::ostream& out, const Hdf5File& file, const std::string& object,
                     const std::string& indent) {
  for (const auto& name : file.attribute_names(object)) {
    if (is_bookkeeping(name) || name == "units" || name == "description") continue;
    out << indent << "@" << name << ": ";
    try {
      out << show_attribute(file, object, name) << '\n';
    } catch (const Error&) {
      out << "(neither a text nor a number)\n";
    }
  }
}

void show_group(std::ostream& out, const Hdf5File& file, const std::string& group, int depth) {
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  show_attributes(out, file, group, indent);
  for (const auto& name : file.names(group)) {
    const std::string path = (group == "/" ? "" : group) + "/" + name;
    if (file.is_group(path)) {
      out << indent << name << "/\n";
      show_group(out, file, path, depth + 1);
      continue;
    }
    const Dims dims = file.dims(path);
    std::vector<std::string> sizes;
    for (const auto d : dims) sizes.push_back(std::to_string(d));
    out << indent << name << " (" << join(sizes) << ")";
    if (file.has_attribute(path, "units"))
      out << " [" << file.string_attribute(path, "units") << "]";
    out << ": " << show_dataset(file, path, dims) << '\n';
    if (file.has_attribute(path, "description"))
      out << indent << "    " << file.string_attribute(path, "description") << '\n';
    show_attributes(out, file, path, indent + "    ");
  }
}

void list_files(std::ostream& out, const fs::path& directory, const std::string& indent) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(directory)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  for (const auto& path : entries) {
    if (fs::is_directory(path))
      out << indent << path.filename().string() << "/ ("
          << std::distance(fs::directory_iterator(path), {}) << " entries)\n";
    else
      out << indent << path.filename().string() << " ("
          << format_bytes(static_cast<double>(fs::file_size(path))) << ")\n";
  }
}

std::string inspect_checkpoint(const fs::path& directory) {
  CheckpointStore::check(directory);
  const Json manifest = read_json_file(directory / "manifest.json");
  std::ostringstream out;
  out << "checkpoint after iteration " << manifest.at("iteration").get<std::int64_t>()
      << "; all files agree with the manifest\n";
  list_files(out, directory, "  ");
  return out.str();
}

std::string inspect_run(const fs::path& directory) {
  std::ostringstream out;
  if (fs::exists(directory / "status.json")) {
    const Json status = read_json_file(directory / "status.json");
    for (const auto& [key, value] : status.items()) out << key << ": " << value.dump() << '\n';
  }
  if (fs::exists(directory / "metrics.jsonl")) {
    const auto records = read_metrics_log(directory / "metrics.jsonl");
    out << "metrics.jsonl: " << records.size() << " lines";
    if (!records.empty()) out << ", the last of iteration " << records.back().iteration;
    out << '\n';
  }
  out << "files:\n";
  list_files(out, directory, "  ");
  if (fs::exists(directory / "checkpoints"))
    for (const auto& entry : fs::directory_iterator(directory / "checkpoints")) {
      if (!fs::exists(entry.path() / "manifest.json")) continue;
      CheckpointStore::check(entry.path());
      out << "checkpoints/" << entry.path().filename().string() << ": whole\n";
    }
  out << check_rollouts(directory);
  if (fs::exists(directory / "run.h5")) out << "run.h5:\n" << inspect_hdf5(directory / "run.h5");
  return out.str();
}

std::string inspect_model(const fs::path& directory) {
  const ModelConfig config = read_model_config(directory);
  const ParamTable table(config);
  const HuggingFaceReader reader(directory, table);  // checks names and shapes of all tensors
  std::ostringstream out;
  out << "model of the family " << to_string(config.family) << ": " << config.parameters()
      << " parameters, " << config.layers << " layers, hidden size " << config.hidden << ", "
      << config.heads << " query and " << config.kv_heads << " KV heads of " << config.head_dim
      << ", MLP " << config.intermediate << ", vocabulary " << config.vocab
      << (config.tied ? " (tied)" : "") << ", context " << config.max_positions << '\n';
  list_files(out, directory, "  ");
  return out.str();
}

bool is_profile(const fs::path& file) {
  try {
    const Hdf5File h5 = Hdf5File::open_read(file);
    return h5.has_attribute("/", "format") && h5.string_attribute("/", "format") == "taper-profile";
  } catch (const Error&) {
    return false;
  }
}

// Which also checks it.
std::string inspect_profile(const fs::path& file) {
  const LatencyProfile profile = read_profile(file);
  std::ostringstream out;
  out << "latency profile of " << profile.ranks << " ranks, " << profile.ranks_per_node
      << " per node; its checksum is right\n";
  for (const auto& [name, facts] : kIdentityParts) {
    std::vector<std::string> words;
    for (const auto& [fact, value] : profile.identity.*facts) words.push_back(fact + " " + value);
    out << "  " << name << ": " << join(words) << '\n';
  }
  out << to_table(profile);
  return out.str();
}

}  // namespace

std::string inspect_hdf5(const fs::path& file) {
  std::ostringstream out;
  try {
    show_group(out, Hdf5File::open_read(file), "/", 1);
  } catch (const Error& e) {
    TAPER_FAIL(ExitCode::kBadInput, file.string()
                                        << " is damaged or no HDF5 file (" << e.what() << ")");
  }
  return out.str();
}

std::string inspect(const fs::path& path) {
  TAPER_VALIDATE(fs::exists(path), path.string() << " does not exist; check the path");
  if (!fs::is_directory(path))
    return path.string() + "\n" + (is_profile(path) ? inspect_profile(path) : inspect_hdf5(path));
  if (fs::exists(path / "manifest.json")) return inspect_checkpoint(path);
  for (const char* file : {"run.h5", "metrics.jsonl", "status.json"})
    if (fs::exists(path / file)) return inspect_run(path);
  TAPER_VALIDATE(
      fs::exists(path / "config.json"),
      path.string()
          << " is no directory of Taper's (no run.h5, manifest.json or config.json in it)");
  return inspect_model(path);
}

std::string repair_run(const fs::path& run_directory) {
  const fs::path log = run_directory / "metrics.jsonl", file = run_directory / "run.h5";
  TAPER_VALIDATE(fs::exists(log), log.string() << " does not exist (run.h5 is rebuilt from it)");
  RunFile::rebuild_from(file, log).save();
  return inspect_run(run_directory);
}

}  // namespace taper
