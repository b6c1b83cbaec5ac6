// SPDX-License-Identifier: Apache-2.0
#include "results/RunDirectory.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"

namespace taper {

namespace fs = std::filesystem;

namespace {

// Rollout files, whole or half-written, of the iterations that `goes` is true for.
template <class Goes>
void remove_files(const fs::path& folder, const Goes& goes) {
  for (const char* ending : {".h5", ".h5.part"})
    for (const auto& entry : iteration_entries(folder, ending, fs::file_type::regular))
      if (goes(entry.iteration)) fs::remove(entry.path);
}

}  // namespace

std::string iteration_name(std::int64_t iteration) {
  return format_text("iter_%06lld", static_cast<long long>(iteration));
}

std::optional<std::int64_t> iteration_of_name(std::string_view name) {
  constexpr std::string_view kPrefix = "iter_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  std::int64_t iteration = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), iteration);
  if (error != std::errc() || iteration < 0 || iteration_name(iteration) != name)
    return std::nullopt;
  return iteration;
}

std::vector<IterationEntry> iteration_entries(const fs::path& directory, std::string_view ending,
                                              fs::file_type type) {
  std::vector<IterationEntry> entries;
  if (!fs::is_directory(directory)) return entries;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(ending)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - ending.size());
    const auto iteration = iteration_of_name(stem);
    if (iteration && entry.status().type() == type) entries.push_back({*iteration, entry.path()});
  }
  std::sort(entries.begin(), entries.end(), [](const IterationEntry& a, const IterationEntry& b) {
    return a.iteration < b.iteration;
  });
  return entries;
}

fs::path RunDirectory::metrics() const {
  return path_ / "metrics.jsonl";
}

fs::path RunDirectory::run_file() const {
  return path_ / "run.h5";
}

fs::path RunDirectory::status() const {
  return path_ / "status.json";
}

fs::path RunDirectory::best() const {
  return path_ / "best.json";
}

fs::path RunDirectory::lock() const {
  return path_ / "run.lock";
}

fs::path RunDirectory::checkpoints() const {
  return path_ / "checkpoints";
}

fs::path RunDirectory::rollouts() const {
  return path_ / "rollouts";
}

fs::path RunDirectory::reward_logs() const {
  return path_ / "reward_logs";
}

fs::path RunDirectory::journal() const {
  return path_ / "journal";
}

fs::path RunDirectory::checkpoint(std::int64_t iteration) const {
  return checkpoints() / iteration_name(iteration);
}

fs::path RunDirectory::rollout(std::int64_t iteration) const {
  return rollouts() / (iteration_name(iteration) + ".h5");
}

fs::path RunDirectory::journal(std::int64_t iteration) const {
  return journal() / (iteration_name(iteration) + ".h5");
}

void RunDirectory::require_places() const {
  std::error_code ignored;
  for (const fs::path& folder : {checkpoints(), rollouts(), reward_logs(), journal()})
    TAPER_VALIDATE(
        !fs::exists(folder, ignored) || fs::is_directory(folder, ignored),
        path_text(folder)
            << " is not a directory (a run writes a directory of this name); move it away");
  for (const fs::path& file : {metrics(), run_file(), status(), best(), lock()})
    TAPER_VALIDATE(!fs::is_directory(file, ignored),
                   path_text(file)
                       << " is a directory (a run writes a file of this name); move it away");
}

void RunDirectory::remove_rollouts_after(std::int64_t finished) const {
  remove_files(rollouts(), [&](std::int64_t iteration) { return iteration > finished; });
}

void RunDirectory::move_rollouts_to_journal(std::int64_t finished) const {
  for (const auto& entry : iteration_entries(rollouts(), ".h5", fs::file_type::regular)) {
    if (entry.iteration <= finished) continue;
    fs::create_directories(journal());
    fs::rename(entry.path, journal(entry.iteration));
  }
}

void RunDirectory::remove_journal(std::int64_t finished) const {
  remove_files(journal(), [&](std::int64_t iteration) { return iteration <= finished; });
  std::error_code not_empty;
  fs::remove(journal(), not_empty);
}

std::vector<fs::path> rollout_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (auto& entry : iteration_entries(folder, ".h5", fs::file_type::regular))
    files.push_back(std::move(entry.path));
  return files;
}

fs::path CheckpointDirectory::state() const {
  return path_ / "state.h5";
}

fs::path CheckpointDirectory::manifest() const {
  return path_ / "manifest.json";
}

CheckpointDirectory CheckpointDirectory::part(const std::string& name) const {
  return CheckpointDirectory(path_ / name);
}

std::vector<fs::path> CheckpointDirectory::states() const {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(path_))
    if (entry.path().filename() == state().filename()) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace taper
