// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace taper::test {

// A directory of its own for one test case, removed at the end. Collective over world: all ranks
// get the same one.
class Scratch {
 public:
  Scratch() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    char name[1024] = {};
    if (rank_ == 0) {
      const auto pattern = (std::filesystem::temp_directory_path() / "taper-test-XXXXXX").string();
      pattern.copy(name, sizeof name - 1);
      if (mkdtemp(name) == nullptr)
        throw std::system_error(errno, std::generic_category(), "mkdtemp");
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = name;
  }
  ~Scratch() {
    if (std::uncaught_exceptions() > 0) return;  // the other ranks may be elsewhere
    MPI_Barrier(MPI_COMM_WORLD);
    std::error_code ignored;
    if (rank_ == 0) std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int rank_ = 0;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void spill(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace taper::test
