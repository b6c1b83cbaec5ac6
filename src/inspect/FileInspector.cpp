// SPDX-License-Identifier: Apache-2.0
#include "inspect/FileInspector.hpp"

#include <algorithm>
#include <initializer_list>
#include <sstream>
#include <vector>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "inspect/Hdf5Tree.hpp"
#include "io/Hdf5File.hpp"
#include "io/Json.hpp"
#include "io/Safetensors.hpp"
#include "profile/ProfileFile.hpp"
#include "profile/RunIdentity.hpp"
#include "results/FileSchema.hpp"
#include "results/MetricsLog.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownKeys = 40;

// A file that cannot be opened is told by the reader that its name asks for.
bool is_hdf5(const fs::path& file) {
  try {
    return Hdf5File::has_signature(file);
  } catch (const Error&) {
    return false;
  }
}

bool is_profile(const fs::path& file) {
  try {
    const Hdf5File h5 = Hdf5File::open_read(file);
    return h5.has_attribute("/", "format") &&
           h5.string_attribute("/", "format") == profile_schema().format;
  } catch (const Error&) {
    return false;
  }
}

// Which also checks it.
std::string inspect_profile(const fs::path& file) {
  const LatencyProfile profile = read_profile(file);
  std::ostringstream out;
  out << "latency profile of " << count_text(profile.ranks, "rank") << ", "
      << profile.ranks_per_node << " per node; its checksum is right\n";
  for (const auto& [name, facts] : kIdentityParts) {
    std::vector<std::string> words;
    for (const auto& [fact, value] : profile.identity.*facts) words.push_back(fact + " " + value);
    out << "  " << name << ": " << join(words) << '\n';
  }
  out << to_table(profile);
  return out.str();
}

std::string inspect_weights(const fs::path& file) {
  const auto weights = SafetensorsFile::open(file);  // checks names, types, sizes and places
  std::size_t bytes = 0;
  std::ostringstream list;
  for (const std::string& name : weights.names()) {
    const TensorView& tensor = weights.tensor(name);
    std::vector<std::string> sizes;
    for (const auto size : tensor.shape) sizes.push_back(std::to_string(size));
    list << "  " << name << ": " << to_string(tensor.type) << " (" << join(sizes) << ")\n";
    bytes += tensor.bytes.size();
  }
  return "weights (safetensors): " + count_text(std::ssize(weights.names()), "tensor") + ", " +
         format_bytes(static_cast<double>(bytes)) + "; the header fits the file\n" + list.str();
}

std::string brief(const Json& value) {
  const auto size = static_cast<std::int64_t>(value.size());
  if (value.is_object()) return "{" + count_text(size, "key") + "}";
  if (value.is_array()) return "[" + count_text(size, "item") + "]";
  return value.dump();
}

std::string inspect_json(const fs::path& file) {
  const Json json = read_json_file(file);
  std::ostringstream out;
  out << "JSON: " << brief(json) << '\n';
  std::size_t shown = 0;
  if (json.is_object())
    for (const auto& [key, value] : json.items()) {
      if (shown++ == kShownKeys) {
        out << "  ...\n";
        break;
      }
      out << "  " << key << ": " << brief(value) << '\n';
    }
  return out.str();
}

std::string inspect_json_lines(const fs::path& file) {
  JsonLines lines(file);
  std::size_t count = 0;
  Json first;
  for (Json line; lines.next(line);)
    if (count++ == 0) first = line;
  if (first.is_object() && first.contains("step")) return "metrics log: " + inspect_metrics(file);
  std::vector<std::string> keys;
  if (first.is_object())
    for (const auto& [key, value] : first.items()) keys.push_back(key);
  return "JSON lines: " + count_text(static_cast<std::int64_t>(count), "line") +
         (keys.empty() ? "" : ", the first with " + join(keys)) + "\n";
}

[[noreturn]] void refuse(const fs::path& file, const std::string& ending) {
  std::string kind = "a file of a kind that taper inspect does not know", advice;
  if (ending == ".yaml" || ending == ".yml") {
    kind = "a YAML file";
    advice = "; taper train " + path_text(file) + " --check validates a run file";
  }
  TAPER_FAIL(ExitCode::kBadInput, path_text(file)
                                      << " is " << kind
                                      << " (supported: HDF5 files, weights (.safetensors), .json, "
                                         ".jsonl, and directories: runs, checkpoints, models)"
                                      << advice);
}

}  // namespace

std::string inspect_metrics(const fs::path& file) {
  const auto records = read_metrics_log(file);
  std::string text = count_text(std::ssize(records), "line");
  if (!records.empty())
    text += ", iterations " + std::to_string(records.front().iteration) + " to " +
            std::to_string(records.back().iteration);
  // The score of the last weights, for each end that the run has had.
  std::int64_t more = 0;
  for (std::size_t i = 1; i < records.size(); ++i)
    if (records[i].iteration == records[i - 1].iteration) ++more;
  if (more > 0) text += " (" + count_text(more, "line") + " of evaluations after an iteration)";
  return text + "\n";
}

std::string inspect_file(const fs::path& file) {
  const std::string ending = file.extension().string();
  const auto ends_in = [&](std::initializer_list<const char*> endings) {
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
  };
  // A damaged HDF5 file may have lost its signature.
  if (is_hdf5(file) || ends_in({".h5", ".hdf5"}))
    return is_profile(file) ? inspect_profile(file) : hdf5_tree(file);
  if (ends_in({".safetensors"})) return inspect_weights(file);
  if (ends_in({".jsonl"})) return inspect_json_lines(file);
  if (ends_in({".json"})) return inspect_json(file);
  refuse(file, ending);
}

}  // namespace taper
