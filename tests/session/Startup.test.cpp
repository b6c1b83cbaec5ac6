// SPDX-License-Identifier: Apache-2.0
#include "session/Startup.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

using namespace taper;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string problem(int mpi_ranks, std::map<std::string, std::string> variables) {
  return lone_rank_problem(mpi_ranks, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("a process that is rightly alone has no problem") {
  CHECK(problem(1, {}).empty());
  CHECK(problem(1, {{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}).empty());
  CHECK(problem(1, {{"SLURM_NTASKS", "1"}}).empty());
  // mpiexec -n 1 inside a larger job
  CHECK(problem(1, {{"PMI_SIZE", "1"}, {"SLURM_NTASKS", "8"}}).empty());
}

TEST_CASE("several ranks that see each other have no problem") {
  CHECK(problem(4, {{"PMI_SIZE", "4"}, {"SLURM_NTASKS", "4"}}).empty());
  CHECK(problem(2, {{"SLURM_NTASKS", "4"}}).empty());
}

TEST_CASE("ranks that a launcher started but MPI sees alone are told so, with the remedy") {
  for (const char* name :
       {"PMI_SIZE", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"}) {
    const auto text = problem(1, {{name, "4"}});
    CHECK_THAT(text, ContainsSubstring(std::string(name) + "=4"));
    CHECK_THAT(text, ContainsSubstring("srun --mpi=pmi2"));
  }
  CHECK_THAT(problem(1, {{"PMI_RANK", "3"}}), ContainsSubstring("PMI_RANK=3"));
}

TEST_CASE("a launcher says whether it started several processes") {
  const auto several = [](const std::map<std::string, std::string>& variables) {
    return is_one_of_several([&](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK(several({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}));
  CHECK(several({{"OMPI_COMM_WORLD_SIZE", "2"}}));
  CHECK(!several({}));
  CHECK(several({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}}));
  CHECK(!several({{"SLURM_NTASKS", "4"}}));
  CHECK(!several({{"PMI_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}}));
}

TEST_CASE("the MPI library has a name and a version") {
  const std::string library = mpi_library();
  INFO(library);
  CHECK(library.find_first_of("0123456789") != std::string::npos);
  CHECK(library.find_first_of("\t\n") == std::string::npos);
}
