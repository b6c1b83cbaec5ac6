// SPDX-License-Identifier: Apache-2.0
#include "run/JobLife.hpp"

#include <algorithm>
#include <exception>
#include <list>

#include "base/Log.hpp"
#include "comm/Collectives.hpp"
#include "run/OutputLock.hpp"

namespace taper {

int JobLife::live(Session& session, const MakeJob& make) const {
  const auto note = std::make_shared<FailureNote>(status);
  Ranks& ranks = session.start(tp_degrees, hang_seconds,
                               purpose == Purpose::kCheck ? "." : directory.path().string(),
                               [note](const std::string& why) { note->write(why); });
  set_precision(ranks.exec, precision);
  return session.finish(live_on(ranks, *note, make));
}

namespace {

// The plan of rank 0, and, if others need more, that of the one that needs most. Collective over
// the world.
void report_memory(const Ranks& ranks, const MemoryPlan& plan) {
  TAPER_INFO("memory of rank 0\n" << plan.table());
  std::vector<std::int64_t> bytes(ranks.size());
  all_gather(ranks.world(), bytes, std::vector<std::int64_t>{plan.total()});
  const auto most = std::max_element(bytes.begin(), bytes.end());
  if (*most == bytes.front()) return;
  const int rank = static_cast<int>(most - bytes.begin());
  const std::string table = broadcast_string(ranks.world(), plan.table(), rank);
  TAPER_INFO("memory of rank " << rank << ", which needs most\n" << table);
}

}  // namespace

ExitCode JobLife::live_on(const Ranks& ranks, FailureNote& note, const MakeJob& make) const {
  std::list<OutputLock> locks;  // until the reason of a failure is written, too
  try {
    require_equal(ranks, "the configuration", config);
    if (ranks.rank() == 0 && stop != nullptr && stop->mine() == StopReason::kDeadline)
      TAPER_WARN(
          "the deadline of this job has already passed (--deadline or TAPER_DEADLINE, minus "
          "Run/Deadline Margin): it stops before it has learned anything, with exit code 75; give "
          "a later time, in seconds since 1970");
    for (const JobOutput& output : outputs)
      OutputLock::require_free(ranks, output.what, output.lock);
    const std::unique_ptr<Job> job = make(ranks);
    report_memory(ranks, job->memory_plan());
    const auto find = [&] {
      return find_resume_point(ranks, resume, directory.path(), directory_key);
    };
    const RunStart start = job->examine(
        find(), purpose == Purpose::kCheck ? CheckpointCheck::kContents : CheckpointCheck::kHead);
    if (purpose == Purpose::kCheck) {
      job->report_start(start);
      TAPER_INFO("input is valid; " << job->start_text(start));
      return ExitCode::kDone;
    }
    // From here on something is written. What is there is looked at again now that this job has it
    // for itself: another one may have ended while this one waited.
    for (const JobOutput& output : outputs) locks.emplace_back(ranks, output.what, output.lock);
    const ResumePoint from = find();
    note.armed = true;
    const ExitCode code = job->run(from);
    note.armed = false;
    return code;
  } catch (const std::exception& error) {
    note.write(error.what());
    throw;
  }
}

}  // namespace taper
