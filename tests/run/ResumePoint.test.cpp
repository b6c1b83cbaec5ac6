// SPDX-License-Identifier: Apache-2.0
#include "run/ResumePoint.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "base/Error.hpp"
#include "comm/Collectives.hpp"
#include "support/Scratch.hpp"
#include "support/TestRanks.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

struct Fixture : TestRanks {
  // Two runs with two checkpoints each.
  Fixture() {
    on_rank_0([&] {
      for (const char* run : {"a", "b"})
        for (const char* name : {"iter_000002", "iter_000010"}) {
          fs::create_directories(checkpoint(run, name));
          spill(checkpoint(run, name) / "manifest.json", "{}");
        }
    });
  }
  fs::path checkpoint(const std::string& run, const std::string& name) const {
    return scratch.path() / run / "checkpoints" / name;
  }
  void on_rank_0(const std::function<void()>& act) const {
    if (ranks.rank() == 0) act();
    barrier(ranks.world());
  }
  ResumePoint find(const fs::path& resume, const std::string& output) const {
    return find_resume_point(ranks, resume.string(), scratch / output);
  }
  void refuses(const fs::path& resume, const std::string& output,
               const std::vector<std::string>& words) const {
    for (const std::string& word : words)
      CHECK_THROWS_MATCHES(find(resume, output), Error, MessageMatches(ContainsSubstring(word)));
    barrier(ranks.world());
  }

  Scratch scratch;
};

}  // namespace

TEST_CASE("a run goes on from its own checkpoints") {
  const Fixture f;
  CHECK(f.find("none", "a").is_start());
  CHECK(f.find("auto", "a").store == f.scratch / "a/checkpoints");
  CHECK(!f.find("auto", "empty").is_start());  // there may come one yet
  for (const char* slash : {"", "/"}) {
    ResumePoint point = f.find(f.checkpoint("a", "iter_000002").string() + slash, "a");
    CHECK(point.checkpoint.filename() == "iter_000002");
    CHECK(point.is_own);
    for (const char* folder : {"a", "a/checkpoints"}) {  // the newest is meant
      point = f.find((f.scratch / folder).string() + slash, "a");
      CHECK(point.checkpoint.empty());
      CHECK(fs::equivalent(point.store, f.scratch / "a/checkpoints"));
      CHECK(point.is_own);
    }
  }
}

TEST_CASE("another run's checkpoint begins a new run, in a directory without one") {
  const Fixture f;
  const fs::path from = f.checkpoint("a", "iter_000002");
  CHECK(!f.find(from, "new").is_own);
  CHECK(f.find(from, "new").checkpoint.filename() == "iter_000002");
  CHECK(!f.find(f.scratch / "a", "new").is_own);
  f.on_rank_0([&] {  // neither belongs to a run
    fs::create_directories(f.scratch / "new/rollouts");
    spill(f.scratch / "new/profile.h5", "");
    spill(f.scratch / "new/status.json", "{}");
  });
  CHECK_NOTHROW(f.find(from, "new"));

  f.refuses(from, "b", {"iter_000002 belongs to another run", "/b ", "--resume auto"});
  f.refuses(f.scratch / "a", "b", {"another run", "name a new Output/Directory;"});
  CHECK_THROWS_MATCHES(
      find_resume_point(f.ranks, from.string(), f.scratch / "b", "Output/Run Directory"), Error,
      MessageMatches(ContainsSubstring("another run than Output/Run Directory ") &&
                     ContainsSubstring("name a new Output/Run Directory;")));
  barrier(f.ranks.world());
  for (const char* file : {"metrics.jsonl", "run.h5", "rollouts/iter_000001.h5"}) {
    f.on_rank_0([&] { spill(f.scratch / "new" / file, ""); });
    f.refuses(from, "new", {fs::path(file).filename()});
    f.on_rank_0([&] { fs::remove(f.scratch / "new" / file); });
  }
}

TEST_CASE("names may have any characters") {
  const Fixture f;
  const fs::path run = f.scratch / "b\nc";
  f.on_rank_0([&] { fs::rename(f.scratch / "b", run); });
  CHECK(fs::equivalent(f.find(run, "new").store, run / "checkpoints"));
  const ResumePoint point = f.find(run / "checkpoints/iter_000010", "new");
  CHECK(fs::equivalent(point.checkpoint, run / "checkpoints/iter_000010"));
  CHECK(point.store.empty());
  CHECK(!point.is_own);
}

TEST_CASE("a directory that cannot be looked at is an error of all ranks") {
  const Fixture f;
  f.refuses(f.scratch / std::string(300, 'x'), "a", {"xxx"});  // longer than a name may be
}

TEST_CASE("what is no checkpoint and no run is refused, with what to give") {
  const Fixture f;
  f.on_rank_0([&] {
    fs::create_directories(f.scratch / "empty/checkpoints");
    spill(f.scratch / "file", "");
  });
  f.refuses(f.scratch / "nowhere", "a", {"nowhere is not a directory; check the path"});
  f.refuses(f.scratch / "no where", "a", {"/no where' is not a directory"});
  f.refuses("nowhere", "a", {"nowhere is not a directory", "working directory"});
  f.refuses(f.scratch / "file", "a", {"file is not a directory"});
  f.refuses(f.scratch / "empty", "a", {"empty is neither", "manifest.json", "--resume auto"});
}
