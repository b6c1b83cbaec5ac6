// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/Checkpoint.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "checkpoint/Manifest.hpp"
#include "checkpoint/SaveModel.hpp"
#include "comm/Collectives.hpp"
#include "io/AtomicFile.hpp"
#include "io/Descriptor.hpp"
#include "io/Json.hpp"
#include "results/RunDirectory.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = ".writing";

// Whether a checkpoint has such a model, of this shape and with this meaning.
bool has(const fs::path& checkpoint, const CheckpointPart& part) {
  try {
    (void)read_state_info(CheckpointStore::part_state(checkpoint, part.name), part.files);
    return part.text_file.empty() ||
           read_json_file(checkpoint / part.text_file) == parse_json(part.text, part.name);
  } catch (const Error&) {
    return false;
  }
}

// Without a model only what stands beside it.
StateInfo read_part(const fs::path& state, const ModelFiles& files, TrainingModel* model) {
  return model == nullptr ? read_state_info(state, files) : read_state(state, files, *model);
}

std::string try_load(const fs::path& checkpoint, const Ranks& ranks, const ModelFiles& files,
                     TrainingModel* model, const std::vector<CheckpointPart>& parts,
                     StateInfo& info) {
  if (const auto problems = manifest_problems(checkpoint, ranks.world()); !problems.empty())
    return problems.front() + (problems.size() > 1 ? ", and more of its files" : "");
  std::string problem;
  try {
    info = read_part(CheckpointDirectory(checkpoint).state(), files, model);
    for (const CheckpointPart& part : parts)
      if (part.is_needed || has(checkpoint, part))
        read_part(CheckpointStore::part_state(checkpoint, part.name), part.files, part.model);
      else if (ranks.rank() == 0)
        TAPER_INFO(path_text(checkpoint)
                   << " has no " << part.name << " that fits: the run goes on with that of "
                   << path_text(part.files.directory));
  } catch (const std::exception& e) {
    problem = e.what();
  }
  return first_text(ranks.world(), problem);
}

void publish_loaded(TrainingModel* model, const std::vector<CheckpointPart>& parts) {
  if (model != nullptr) model->publish();
  for (const CheckpointPart& part : parts)
    if (part.model != nullptr) part.model->publish();
}

// The directory must be there. Collective over the ranks of the model; does nothing on others.
void write_part(const ModelFiles& files, const TrainingModel* model, StateInfo info,
                const CheckpointDirectory& directory) {
  if (model == nullptr) return;
  info.optimizer_steps = model->optimizer().steps();
  write_model(files, *model, directory.path());
  const PhaseScope phase(model->ranks().progress, "write_state");
  write_state(directory.state(), files, *model, info);
}

// One that cannot be removed now (a file of it is open on another host) is tried again after the
// next save.
void remove_old(const fs::path& checkpoint) {
  std::error_code error;
  fs::remove_all(checkpoint, error);
  if (error)
    TAPER_WARN("the old checkpoint " << path_text(checkpoint) << " cannot be removed ("
                                     << error.message() << "); this is tried again later");
}

}  // namespace

void CheckpointStore::save(const Ranks& ranks, const ModelFiles& files, const TrainingModel* model,
                           const StateInfo& info, const std::function<void()>& before_rename,
                           const std::vector<CheckpointPart>& parts) {
  const PhaseScope phase(ranks.progress, "save_checkpoint");
  const std::string name = iteration_name(info.iteration);
  const fs::path target = directory_ / name, aside = directory_ / (name + kUnfinished);
  AsideDirectory writing(ranks.rank() == 0 ? aside : "");
  ranks.progress.set_step(0);
  const CheckpointDirectory checkpoint(aside);
  for (const CheckpointPart& part : parts) {
    if (ranks.rank() != 0) break;
    fs::create_directories(checkpoint.part(part.name).path());
    if (!part.text_file.empty()) write_file_atomically(aside / part.text_file, part.text);
  }
  barrier(ranks.world());  // the first rank that trains a model writes it
  write_part(files, model, info, checkpoint);
  for (const CheckpointPart& part : parts)
    write_part(part.files, part.model, {info.iteration, 0, info.seed, info.config},
               checkpoint.part(part.name));
  barrier(ranks.world());
  ranks.progress.set_step(1);
  const auto files_here = write_manifest(aside, info.iteration, ranks.world());
  for (std::size_t i = ranks.rank(); i < files_here.size(); i += ranks.size())
    detail::Descriptor(files_here[i], O_RDONLY).sync();  // each rank flushes some
  barrier(ranks.world());
  before_rename();
  if (ranks.rank() == 0) {
    ranks.progress.set_step(2);
    writing.rename_to(target);
    ranks.progress.set_step(3);
    const auto all = list(directory_);
    for (std::size_t i = static_cast<std::size_t>(keep_); i < all.size(); ++i)
      if (!kept_ || iteration_of_name(all[i].filename().string()) != kept_) remove_old(all[i]);
  }
  barrier(ranks.world());
}

bool CheckpointStore::has(std::int64_t iteration) const {
  return is_checkpoint(directory_ / iteration_name(iteration));
}

std::vector<fs::path> CheckpointStore::unfinished(const fs::path& directory) {
  std::vector<fs::path> found;
  if (!fs::exists(directory)) return found;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == kUnfinished) found.push_back(entry.path());
  return found;
}

void CheckpointStore::remove_unfinished() const {
  for (const auto& path : unfinished(directory_)) fs::remove_all(path);
  for (const auto& path : being_replaced(directory_)) finish_replacement(path);
}

void CheckpointStore::remove_after(std::int64_t iteration) const {
  for (const auto& path : list(directory_)) {
    if (*iteration_of_name(path.filename().string()) <= iteration) break;
    fs::remove_all(path);
  }
}

StateInfo CheckpointStore::load(const fs::path& checkpoint, const Ranks& ranks,
                                const ModelFiles& files, TrainingModel* model,
                                const std::vector<CheckpointPart>& parts) {
  StateInfo info;
  const std::string problem = try_load(checkpoint, ranks, files, model, parts, info);
  if (!problem.empty()) fail_unusable(checkpoint, problem);
  publish_loaded(model, parts);
  return info;
}

fs::path CheckpointStore::part_state(const fs::path& checkpoint, const std::string& name) {
  const fs::path state = CheckpointDirectory(checkpoint).part(name).state();
  TAPER_VALIDATE(fs::exists(state),
                 path_text(checkpoint)
                     << " has no " << name
                     << " (the run that wrote it had none); to start with its weights "
                     << "and a new " << name
                     << ", set Model/Directory to it, with a new Output/Directory");
  return state;
}

void CheckpointStore::warn_passed_over(const fs::path& checkpoint, const std::string& problem) {
  TAPER_WARN("checkpoint " << path_text(checkpoint) << " is passed over: " << problem);
}

void CheckpointStore::fail_unusable(const fs::path& checkpoint, const std::string& problem) {
  TAPER_FAIL(ExitCode::kBadInput, "checkpoint "
                                      << path_text(checkpoint) << " cannot be used (" << problem
                                      << "); name another checkpoint, or use --resume auto");
}

void CheckpointStore::fail_none_usable(const fs::path& directory, const std::string& last_problem) {
  TAPER_FAIL(ExitCode::kBadInput, "no checkpoint in "
                                      << path_text(directory) << " can be used (last problem: "
                                      << last_problem << "); --resume none starts afresh");
}

std::vector<fs::path> CheckpointStore::list(const fs::path& directory) {
  auto found = iteration_entries(directory, "", fs::file_type::directory);
  std::reverse(found.begin(), found.end());
  std::vector<fs::path> checkpoints;
  for (auto& entry : found) checkpoints.push_back(std::move(entry.path));
  return checkpoints;
}

std::vector<fs::path> CheckpointStore::being_replaced(const fs::path& directory) {
  std::vector<fs::path> targets;
  for (const auto& entry :
       iteration_entries(directory, old_path({}).string(), fs::file_type::directory))
    targets.push_back(directory / iteration_name(entry.iteration));
  return targets;
}

bool CheckpointStore::is_checkpoint(const fs::path& directory) {
  return fs::exists(CheckpointDirectory(directory).manifest());
}

std::vector<std::string> CheckpointStore::problems(const fs::path& checkpoint) {
  return manifest_problems(checkpoint, Group::self());
}

std::optional<StateInfo> CheckpointStore::load_newest(
    const Ranks& ranks, const ModelFiles& files, TrainingModel* model,
    const std::vector<CheckpointPart>& parts) const {
  // Rank 0 looks: other ranks might see a shared folder in another state.
  const std::vector<fs::path> there = from_rank_0(ranks, [&] { return list(directory_); });
  std::string last_problem;
  for (const fs::path& checkpoint : there) {
    StateInfo info;
    last_problem = try_load(checkpoint, ranks, files, model, parts, info);
    if (last_problem.empty()) {
      publish_loaded(model, parts);
      return info;
    }
    if (ranks.rank() == 0) warn_passed_over(checkpoint, last_problem);
  }
  if (!last_problem.empty()) fail_none_usable(directory_, last_problem);
  return std::nullopt;
}

}  // namespace taper
