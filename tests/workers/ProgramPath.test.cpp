// SPDX-License-Identifier: Apache-2.0
#include "workers/ProgramPath.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
namespace fs = std::filesystem;

namespace {

// Two folders: "first" has a program "judge" that cannot be run and a folder of the name "tool",
// "second" has both as programs.
struct Folders {
  Folders() {
    for (const char* folder : {"first", "first/tool", "second"})
      fs::create_directory(scratch / folder);
    for (const char* file : {"first/judge", "second/judge", "second/tool"})
      spill(scratch / file, "");
    for (const char* file : {"second/judge", "second/tool"})
      fs::permissions(scratch / file, fs::perms::owner_all);
  }
  std::string operator/(const std::string& name) const { return (scratch / name).string(); }

  Scratch scratch;
};

}  // namespace

TEST_CASE("a name with a slash is the program itself") {
  const Folders folders;
  CHECK(can_be_run(folders / "second/judge", ""));
  CHECK(!can_be_run(folders / "first/judge", ""));  // no permission
  CHECK(!can_be_run(folders / "first/tool", ""));
  CHECK(!can_be_run(folders / "second/nothing", ""));
}

TEST_CASE("other names are looked for in all folders of the search path") {
  const Folders folders;
  const std::string first = folders / "first", both = first + ":" + folders / "second";
  CHECK(can_be_run("judge", both.c_str()));  // not stopped by what cannot be run
  CHECK(can_be_run("tool", both.c_str()));
  CHECK(!can_be_run("judge", first.c_str()));
  CHECK(!can_be_run("nothing", both.c_str()));
  CHECK(can_be_run("sh", nullptr));
  CHECK(!can_be_run("judge", nullptr));
}

TEST_CASE("an empty entry of the search path is the working directory") {
  const Folders folders;
  const fs::path before = fs::current_path();
  fs::current_path(folders / "second");
  const bool found[] = {can_be_run("judge", ""), can_be_run("judge", "/nowhere:"),
                        can_be_run("judge", ":/nowhere"), can_be_run("judge", "/nowhere")};
  fs::current_path(before);
  CHECK((found[0] && found[1] && found[2] && !found[3]));
}
