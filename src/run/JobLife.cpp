// SPDX-License-Identifier: Apache-2.0
#include "run/JobLife.hpp"

#include <exception>
#include <list>

#include "base/Log.hpp"
#include "run/OutputLock.hpp"

namespace taper {

int JobLife::live(Session& session, const MakeJob& make) const {
  const auto note = std::make_shared<FailureNote>(status);
  Ranks& ranks = session.start(tp_degrees, hang_seconds,
                               purpose == Purpose::kCheck ? "." : directory.path().string(),
                               [note](const std::string& why) { note->write(why); });
  ranks.exec.arithmetic = arithmetic;
  return session.finish(live_on(ranks, *note, make));
}

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
    TAPER_INFO("memory of rank 0\n" << job->memory_plan().table());
    const auto find = [&] { return find_resume_point(ranks, resume, directory.path()); };
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
