// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace taper {

// One subcommand each: argv[0] is its name. They return an exit code or throw Error.
int run_train(int argc, char** argv);
int run_sft(int argc, char** argv);
int run_reward_model(int argc, char** argv);
int run_generate(int argc, char** argv);
int run_score(int argc, char** argv);
int run_draft(int argc, char** argv);
int run_exits(int argc, char** argv);
int run_eval(int argc, char** argv);
int run_plan(int argc, char** argv);
int run_profile(int argc, char** argv);
int run_inspect(int argc, char** argv);
int run_report(int argc, char** argv);
int run_replay(int argc, char** argv);
int run_simulate(int argc, char** argv);

}  // namespace taper
