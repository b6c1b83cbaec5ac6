// SPDX-License-Identifier: Apache-2.0
#include "param/ParamFile.hpp"

#include <unistd.h>

#include <Teuchos_ParameterList.hpp>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "ShowTypes.hpp"
#include "support/Messages.hpp"

namespace taper::param {
namespace {

using test::message_of;

std::string stable(const ParamFile& file) {
  return test::to_stable_text(file.list());
}

ParamFile parse(const std::string& text) {
  return ParamFile::parse(text, "run.yaml");
}

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("taper-param-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST_CASE("files are read by their ending") {
  const Folder folder;
  const std::string yaml = folder.write("a.yaml", "A:\n  x: 1\n");
  CHECK(stable(ParamFile::read(yaml)) == "A/x = 1\n");
  CHECK(ParamFile::read(yaml).text() == "A:\n  x: 1\n");
  CHECK(ParamFile::read(yaml).where("A/x") == yaml + " line 2");
  CHECK(ParamFile::read(folder.write("empty.yml", "")).list().numParams() == 0);
}

TEST_CASE("files that cannot be read are named") {
  const Folder folder;
  const std::string gone = folder.path() + "/gone.yaml";
  CHECK(message_of([&] { ParamFile::read(gone); }) ==
        gone + " cannot be read (no such file); check the path");
  CHECK(message_of([&] { ParamFile::read(folder.path()); }) ==
        folder.path() + " cannot be read (it is a directory); name a file");
  CHECK(message_of([] { ParamFile::parse("", "run.json"); }) ==
        "run.json has no known ending (a run file ends in .yaml or .yml)");
}

TEST_CASE("a file may say that it is YAML, and where its document begins and ends") {
  const ParamFile file = parse("%YAML 1.1\n---\nA:\n  x: 1\n...\n");
  CHECK(stable(file) == "A/x = 1\n");
  CHECK(file.where("A/x") == "run.yaml line 4");
}

TEST_CASE("assignments replace and add values") {
  ParamFile file = parse("A:\n  x: 1\n  y: 2\nB:\n");
  file.set("A/x=0.5");
  file.set(" A/y = [1, 2] ");
  file.set("A/z='7'");
  file.set("B/C/d=a=b");
  file.set("top=off");
  file.set("empty=");
  CHECK(stable(file) ==
        "A/x = 0.5\nA/y = [1, 2]\nA/z = '7'\nB/C/d = 'a=b'\nempty = ''\ntop = off\n");
  CHECK(file.where("A/x") == "--set A/x=0.5");
  CHECK(file.where("A/other") == "run.yaml");
  CHECK(file.where("B") == "run.yaml line 4");
  CHECK(file.where("B/C") == "--set B/C/d=a=b");
  CHECK(file.text() == "A:\n  x: 1\n  y: 2\nB:\n");
}

TEST_CASE("defaults stand behind the file and its assignments, and say where they come from") {
  ParamFile file = parse("A:\n  x: 1\n");
  file.set("A/y=2");
  CHECK(!file.set_default("A/x", "7", "preset p"));
  CHECK(!file.set_default("A/y", "8", "preset p"));
  CHECK(file.set_default("A/z", "0.5", "preset p"));
  CHECK(file.set_default("B/b", "true", "preset p"));
  CHECK(stable(file) == "A/x = 1\nA/y = 2\nA/z = 0.5\nB/b = true\n");
  CHECK(file.where("A/x") == "run.yaml line 2");
  CHECK(file.where("A/z") == "preset p");
  CHECK(message_of([&] {
          file.set_default("A/x/deep", "1", "preset p");
        }).find("preset p: A/x is a value, not a section") != std::string::npos);
}

TEST_CASE("names of files with blanks are quoted") {
  const ParamFile file = ParamFile::parse("A:\n  x: 1\n", "my run.yaml");
  CHECK(file.where("A/x") == "'my run.yaml' line 2");
  CHECK(
      message_of([] { ParamFile::parse("A: [1\n", "my run.yaml"); }).starts_with("'my run.yaml'"));
}

TEST_CASE("the last assignment of a name counts") {
  ParamFile file;
  file.set("A/x=1");
  file.set("A/x=text");
  CHECK(stable(file) == "A/x = text\n");
  CHECK(file.name() == "command line");
}

TEST_CASE("assignments that make no sense are refused") {
  ParamFile file = parse("A:\n  x: 1\n");
  const auto problem = [&](const std::string& text) { return message_of([&] { file.set(text); }); };
  for (const char* text : {"A/x", "=1", "/A=1", "A/=1", "A//x=1"}) {
    CHECK(problem(text) ==
          std::string("--set ") + text + " is not understood (expected: --set Section/Name=value)");
  }
  CHECK(problem("A/x/y=1") ==
        "--set A/x/y=1: A/x is a value, not a section (set by run.yaml line 2)");
  CHECK(problem("A=1") ==
        "--set A=1 replaces a whole section (name the values in it: A/Name=value)");
  CHECK(problem("A/x=[1") ==
        "--set A/x=[1 cannot be read as YAML (end of sequence flow not found)");
  CHECK(problem("A/x='1") == "--set A/x='1 cannot be read as YAML (illegal EOF in scalar)");
  for (const char* text : {"A/x='1'2", "A/x=[1] 2", "A/x='a': b"}) {
    CHECK(problem(text) == std::string("--set ") + text +
                               " cannot be read as YAML (one value is expected, and nothing after "
                               "it)");
  }
  CHECK(stable(file) == "A/x = 1\n");
}

TEST_CASE("all values come with their paths, in the order of the file") {
  ParamFile file = ParamFile::parse(
      "B:\n  Every: 3\n  In:\n    Rate: 1e-3\n    Name: 'a: b'\nA: {On: true, List: [1, 2]}\nC:\n",
      "run.yaml");
  file.set("A/New=x");
  const std::vector<std::pair<std::string, std::string>> expected{
      {"B/Every", "3"}, {"B/In/Rate", "0.001"}, {"B/In/Name", "'a: b'"},
      {"A/On", "true"}, {"A/List", "[1, 2]"},   {"A/New", "x"}};
  CHECK(file.values() == expected);
  CHECK(ParamFile().values().empty());
}

}  // namespace
}  // namespace taper::param
