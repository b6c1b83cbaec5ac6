// SPDX-License-Identifier: Apache-2.0
#include "run/OutputLock.hpp"

#include <exception>
#include <filesystem>
#include <thread>

#include "base/Path.hpp"

namespace taper {
namespace {

// Until rank 0 hears yes. Step by step, so that no rank is seen as waiting too long in one
// collective.
template <class Question>
void ask(const Ranks& ranks, const Question& question) {
  while (!from_rank_0(ranks, question))
    if (ranks.rank() == 0) std::this_thread::sleep_for(FileLock::kPause);
}

}  // namespace

OutputLock::OutputLock(const Ranks& ranks, const std::string& what,
                       const std::filesystem::path& file)
    : ranks_(ranks.size()), exceptions_(std::uncaught_exceptions()), lock_(file, what) {
  ranks.progress.set_phase("lock");
  ask(ranks, [this] { return lock_.try_take(); });
}

OutputLock::~OutputLock() {
  if (ranks_ > 1 && std::uncaught_exceptions() > exceptions_) lock_.leave_behind();
}

void OutputLock::require_free(const Ranks& ranks, const std::string& what,
                              const std::filesystem::path& file) {
  FileLock lock(file, what);
  ask(ranks, [&lock] { return lock.try_free(); });
}

std::filesystem::path OutputLock::of_model(const std::filesystem::path& directory) {
  return without_end_slash(directory).string() + ".lock";
}

}  // namespace taper
