// SPDX-License-Identifier: Apache-2.0
#include "Commands.hpp"
#include "Tuning.hpp"
#include "tune/SftJob.hpp"

namespace taper {

int run_sft(int argc, char** argv) {
  return run_tuning<SftJob, SftOptions>(argc, argv,
                                        {"taper sft",
                                         "Supervised fine-tuning on files of examples, or on "
                                         "in-tree tasks, configured by a run file."});
}

}  // namespace taper
