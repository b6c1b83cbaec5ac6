// SPDX-License-Identifier: Apache-2.0
#include "inspect/Inspector.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/Error.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "checkpoint/Checkpoint.hpp"
#include "inspect/FileInspector.hpp"
#include "inspect/Hdf5Tree.hpp"
#include "inspect/RolloutText.hpp"
#include "io/FileLock.hpp"
#include "io/Json.hpp"
#include "model/HuggingFace.hpp"
#include "results/RunDirectory.hpp"
#include "results/RunFile.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

void list_files(std::ostream& out, const fs::path& directory, const std::string& indent) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(directory)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  for (const auto& path : entries) {
    if (fs::is_directory(path))
      out << indent << path.filename().string() << "/ ("
          << count_text(std::distance(fs::directory_iterator(path), {}), "item") << ")\n";
    else
      out << indent << path.filename().string() << " ("
          << format_bytes(static_cast<double>(fs::file_size(path))) << ")\n";
  }
}

Inspection inspect_checkpoint(const fs::path& directory) {
  Inspection found{{}, CheckpointStore::problems(directory), {}};
  if (!found.problems.empty())
    found.advice.push_back("taper train does not start from this checkpoint; name another one");
  std::ostringstream out;
  if (found.problems.empty())
    out << "checkpoint after iteration "
        << read_json_file(CheckpointDirectory(directory).manifest())
               .value("iteration", std::int64_t{0})
        << "; all files agree with the manifest\n";
  else
    out << "checkpoint, DAMAGED\n";
  list_files(out, directory, "  ");
  found.text = out.str();
  return found;
}

// Looks at the parts of a run one after the other, and keeps what is wrong with each.
class RunInspector {
 public:
  explicit RunInspector(RunDirectory directory) : directory_(std::move(directory)) {}

  Inspection run() {
    check_if_there(directory_.status(), [&](const fs::path& file) {
      const Json status = read_json_file(file);
      for (const auto& [key, value] : status.items()) out_ << key << ": " << value.dump() << '\n';
      const std::string state = status.value("state", "");
      if ((state == "running" || state == "pending") && !FileLock::is_held(directory_.lock()))
        out_ << "(no job is at work here: the last one was killed)\n";
    });
    const bool has_log = check_if_there(directory_.metrics(), [&](const fs::path& file) {
      const std::string text = inspect_metrics(file);  // may throw
      out_ << "metrics.jsonl: " << text;
    });
    out_ << "files:\n";
    list_files(out_, directory_.path(), "  ");
    check_checkpoints();
    check_rollouts();
    const bool is_good = check_if_there(directory_.run_file(), [&](const fs::path& file) {
      const std::string tree = hdf5_tree(file);
      out_ << "run.h5:\n" << tree;
    });
    if (!is_good && has_log && fs::exists(directory_.metrics()))
      advice_.push_back("taper inspect --repair " + path_text(directory_.path()) +
                        " rebuilds run.h5");
    return {out_.str(), std::move(problems_), std::move(advice_)};
  }

 private:
  // What a library throws does not name the file.
  template <class Check>
  bool check(const fs::path& path, const Check& look) {
    try {
      look(path);
      return true;
    } catch (const Error& error) {
      problems_.emplace_back(error.what());
    } catch (const std::exception& error) {
      problems_.push_back(path_text(path) + " cannot be read (" + error.what() + ")");
    }
    return false;
  }

  // False if it is damaged.
  template <class Check>
  bool check_if_there(const fs::path& path, const Check& look) {
    const bool is_good = !fs::exists(path) || check(path, look);
    if (!is_good) out_ << path.filename().string() << ": DAMAGED\n";
    return is_good;
  }

  void check_checkpoints() {
    const std::size_t before = problems_.size();
    for (const fs::path& checkpoint : CheckpointStore::list(directory_.checkpoints())) {
      const auto problems = CheckpointStore::problems(checkpoint);
      problems_.insert(problems_.end(), problems.begin(), problems.end());
      out_ << "checkpoints/" << checkpoint.filename().string() << ": "
           << (problems.empty() ? "complete" : "DAMAGED") << '\n';
    }
    if (problems_.size() > before) advice_.push_back("taper train passes damaged checkpoints over");
  }

  void check_rollouts() {
    std::vector<std::int64_t> iterations;
    std::size_t samples = 0;
    int damaged = 0;
    for (const fs::path& path : rollout_files(directory_.rollouts()))
      if (!check(path, [&](const fs::path& file) {
            const RolloutSet set = read_rollouts_checked(file);
            iterations.push_back(set.iteration);
            samples += set.records.size();
          }))
        ++damaged;
    if (iterations.empty() && damaged == 0) return;
    out_ << "rollouts: " << count_text(std::ssize(iterations), "file");
    if (!iterations.empty())
      out_ << ", iterations " << iterations.front() << " to " << iterations.back() << ", "
           << count_text(static_cast<std::int64_t>(samples), "sample") << ": complete";
    if (damaged > 0) out_ << "; " << count_text(damaged, "file") << " DAMAGED";
    out_ << '\n';
  }

  RunDirectory directory_;
  std::ostringstream out_;
  std::vector<std::string> problems_, advice_;
};

std::string inspect_model(const fs::path& directory) {
  const ModelConfig config = read_model_config(directory);
  const ParamTable table(config);
  const HuggingFaceReader reader(directory, table);  // checks names and shapes of all tensors
  std::ostringstream out;
  out << "model of the family " << to_string(config.family) << ": " << config.parameters()
      << " parameters, " << config.layers << " layers, hidden size " << config.hidden << ", "
      << config.heads << " query and " << config.kv_heads << " KV heads of " << config.head_dim
      << ", MLP " << config.intermediate << ", vocabulary " << config.vocab
      << (config.has_scalar_head() ? ", scalar head"
          : config.tied            ? " (tied)"
                                   : "")
      << ", context " << config.max_positions << '\n';
  list_files(out, directory, "  ");
  return out.str();
}

}  // namespace

Inspection inspect(const fs::path& path) {
  TAPER_VALIDATE(fs::exists(path), path_text(path) << " does not exist; " << path_advice(path));
  if (!fs::is_directory(path)) return {path_text(path) + "\n" + inspect_file(path), {}, {}};
  if (CheckpointStore::is_checkpoint(path)) return inspect_checkpoint(path);
  const RunDirectory run(path);
  for (const fs::path& file : {run.run_file(), run.metrics(), run.status()})
    if (fs::exists(file)) return RunInspector(run).run();
  TAPER_VALIDATE(fs::exists(path / "config.json"),
                 path_text(path) << " is not a run, checkpoint or model directory (no run.h5, "
                                    "manifest.json or config.json in it); name one of these");
  return {inspect_model(path), {}, {}};
}

std::string repair_run(const fs::path& run_directory) {
  const RunDirectory run(run_directory);
  const fs::path log = run.metrics(), file = run.run_file();
  TAPER_VALIDATE(fs::exists(log), path_text(log) << " does not exist (run.h5 is rebuilt from it)");
  FileLock lock(run.lock(), path_text(run_directory));
  lock.take();
  RunFile::rebuild_from(file, log).save();
  return path_text(file) + ": rebuilt from metrics.jsonl, " + inspect_metrics(log);
}

}  // namespace taper
