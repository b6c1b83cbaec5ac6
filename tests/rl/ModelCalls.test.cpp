// SPDX-License-Identifier: Apache-2.0
#include "rl/ModelCalls.hpp"

#include <mpi.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <thread>

#include "base/Random.hpp"
#include "comm/Collectives.hpp"
#include "comm/Progress.hpp"
#include "support/AllSamples.hpp"

using namespace taper;
using namespace taper::test;

namespace {

constexpr int kSamples = 10;

std::vector<Sample> samples() {
  std::vector<Sample> list;
  for (int i = 0; i < kSamples; ++i) {
    Sample& s = list.emplace_back();
    s.id.prompt = i / 2;
    s.id.sample = i % 2;
    s.prompt = {i};
    s.response.assign(static_cast<std::size_t>(1 + i % 3), i);
    s.rewards.assign(8, 0.0f);
  }
  return list;
}

// Blocks of all sizes that divide the ranks, each with a group.
class Blocks {
 public:
  explicit Blocks(const Group& world) : world_(world) {
    for (int size = 1; size <= world.size(); ++size) {
      if (world.size() % size != 0) continue;
      sizes_.push_back(size);
      groups_.emplace(
          size, Group::block(world.comm(), world.rank() / size * size, size, world.options()));
    }
  }
  // A random one, the same on all ranks.
  ModelLayout draw(RandomStream& random) const {
    const int size = sizes_[random.below(sizes_.size())];
    const int first = static_cast<int>(random.below(world_.size() / size)) * size;
    return {first, {1, size}};
  }
  const Group* find(const ModelLayout& layout) const {
    if (!layout.ranks().has(world_.rank())) return nullptr;
    return layout.grid.ranks() == world_.size() ? &world_ : &groups_.at(layout.grid.ranks());
  }

 private:
  const Group& world_;
  std::vector<int> sizes_;
  std::map<int, Group> groups_;
};

}  // namespace

TEST_CASE("calls on any ranks add the same figures, whatever time they take") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const Blocks blocks(world);
  RandomStream shared(5, RandomPurpose::kTest, 0, 0);
  RandomStream mine(5, RandomPurpose::kTest, 1, static_cast<std::uint64_t>(world.rank()));
  for (int round = 0; round < 20; ++round) {
    std::vector<Sample> start;
    for (Sample& s : samples())
      if ((s.id.prompt * 2 + s.id.sample) % world.size() == world.rank())
        start.push_back(std::move(s));
    SampleSet set(world, std::move(start));
    std::vector<ModelCall> calls;
    for (std::size_t c = 0; c < 8; ++c) {
      const ModelLayout layout = blocks.draw(shared);
      const auto work = [&, c, layout](SampleSet& here) {
        std::this_thread::sleep_for(std::chrono::milliseconds(mine.below(3)));
        CHECK(here.size() == kSamples);
        CHECK(here.ranks() == layout.grid.ranks());
        const auto replicas = static_cast<std::uint64_t>(layout.grid.dp);
        std::vector<int> replica;
        for (int row = 0; row < kSamples; ++row)
          replica.push_back(static_cast<int>((row + c) % replicas));
        here.move_to(layout.grid, replica);
        for (Sample& s : here.here())
          s.rewards[c] = static_cast<float>(s.id.prompt * 10 + s.id.sample + 100 * c);
        return MetricValues{{"call/" + std::to_string(c), static_cast<double>(c)}};
      };
      const SampleFigure figure{[c](const Sample& s) { return std::vector{s.rewards[c]}; },
                                [c](Sample& s, std::vector<float> v) { s.rewards[c] = v.front(); }};
      calls.push_back({"call", "model", layout, blocks.find(layout), work, {figure}});
    }
    const Progress progress;
    CallRecord record({[](const char*) {}, [](const char*) {}}, progress);
    const MetricValues figures = make_calls(set, world, calls, &record);
    REQUIRE(figures.size() == calls.size());
    std::size_t here = 0;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      CHECK(figures[c].second == static_cast<double>(c));
      if (calls[c].group != nullptr) ++here;
    }
    CHECK(record.spans().size() == here);
    const auto all = all_samples(set);
    REQUIRE(all.size() == kSamples);
    for (const Sample& s : all)
      for (std::size_t c = 0; c < calls.size(); ++c)
        CHECK(s.rewards[c] == static_cast<float>(s.id.prompt * 10 + s.id.sample + 100 * c));
  }
}

TEST_CASE("calls on ranks that are not shared overlap") {
  const Group world = Group::world(MPI_COMM_WORLD);
  if (world.size() < 2) return;
  const Group self = Group::self(world.rank());
  std::vector<Sample> start;
  if (world.rank() == 0) start = samples();
  SampleSet set(world, std::move(start));
  Progress progress;
  // Each waits for a message of the other one in the middle of its call.
  std::vector<ModelCall> calls;
  for (int rank = 0; rank < 2; ++rank)
    calls.push_back({rank == 0 ? "ref" : "values",
                     "model",
                     {rank, {1, 1}},
                     world.rank() == rank ? &self : nullptr,
                     [&, rank](SampleSet&) {
                       const LibraryWait wait(progress, "sendrecv", 2);
                       int told = rank, heard = -1;
                       MPI_Sendrecv(&told, 1, MPI_INT, 1 - rank, 0, &heard, 1, MPI_INT, 1 - rank, 0,
                                    world.comm(), MPI_STATUS_IGNORE);
                       CHECK(heard == 1 - rank);
                       return MetricValues{};
                     }});
  CallRecord record({[](const char*) {}, [](const char*) {}}, progress);
  make_calls(set, world, calls, &record);
  CHECK(record.spans().size() == (world.rank() < 2 ? 1u : 0u));
  for (const CallSpan& span : record.spans()) {
    CHECK(span.wait_s > 0.0);
    CHECK(span.wait_s <= span.end_s - span.begin_s);
  }
}

TEST_CASE("calls of blocks are made before those on all ranks") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const Group self = Group::self(world.rank());
  std::vector<Sample> start;
  if (world.rank() == 0) start = samples();
  SampleSet set(world, std::move(start));
  std::string made;
  const auto call = [&](char name, const ModelLayout& layout, const Group* group) {
    return ModelCall{"ref", "reference", layout, group, [&made, name](SampleSet&) {
                       made += name;
                       return MetricValues{{std::string(1, name), 1.0}};
                     }};
  };
  const Group* mine = world.rank() == 0 ? &self : nullptr;
  const std::vector<ModelCall> calls{call('a', {0, {1, world.size()}}, &world),
                                     call('b', {0, {1, 1}}, mine),
                                     call('c', {0, {1, world.size()}}, &world)};
  const MetricValues figures = make_calls(set, world, calls, nullptr);
  if (world.size() == 1)
    CHECK(made == "abc");
  else
    CHECK(made == (world.rank() == 0 ? "bac" : "ac"));
  std::string names;
  for (const auto& [name, value] : figures) names += name;
  CHECK(names == "abc");
}

TEST_CASE("phases are told to all ranks, those of other ranks as such") {
  const Group world = Group::world(MPI_COMM_WORLD);
  const Group self = Group::self(world.rank());
  std::vector<Sample> start;
  if (world.rank() == 0) start = samples();
  SampleSet set(world, std::move(start));
  std::vector<std::string> told, elsewhere;
  const Progress progress;
  CallRecord record({[&](const char* phase) { told.push_back(phase); },
                     [&](const char* phase) { elsewhere.push_back(phase); }},
                    progress);
  const auto nothing = [](SampleSet&) { return MetricValues{}; };
  const int last = world.size() - 1;
  const ModelCall call{
      "ref", "reference", {last, {1, 1}}, world.rank() == last ? &self : nullptr, nothing};
  make_calls(set, world, {&call, 1}, &record);
  const std::vector<std::string> alone{"ref"}, here{"wait", "ref", "wait"}, there{"wait", "wait"};
  if (world.size() == 1) {
    CHECK(told == alone);
    CHECK(elsewhere.empty());
  } else {
    CHECK(told == (world.rank() == last ? here : there));
    CHECK(elsewhere == alone);
  }
}
