// SPDX-License-Identifier: Apache-2.0
#include "model/Transformer.hpp"

#include <mpi.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "model/GoldenModel.hpp"
#include "support/Bits.hpp"
#include "support/TensorRows.hpp"

using namespace taper;
using namespace taper::test;

namespace {

template <class T>
VectorView<const T, HostExec> view_of(const std::vector<T>& list) {
  return VectorView<const T, HostExec>(list.data(), list.size());
}

std::vector<std::int32_t> some_ids(int count, int vocab) {
  std::vector<std::int32_t> ids(count);
  for (int i = 0; i < count; ++i) ids[i] = (i * 37 + 5) % vocab;
  return ids;
}

// A pass over one sequence of up to kLength tokens, in calls of some tokens each.
constexpr int kLength = kPage + 10;

class SequencePass {
 public:
  SequencePass(const GoldenModel& model)
      : model_(model),
        plan_(plan(model)),
        arena_(plan_),
        pass_(model.table, model.parallel, kLength, model.exec.arithmetic,
              arena_.take<float>("pass", MemoryPhase::kAlways, pass_floats(model)),
              ConstFloatMatrix(model.rope.data(), 512, model.config.head_dim)),
        pages_{
            make_layer_pages(ActivationShape(model.table, model.parallel.shard()),
                             model.config.head_dim, KvType::kF32,
                             arena_.take<float>("pages", MemoryPhase::kAlways, page_floats(model))),
            2 * layer_floats(model)} {}

  // Hidden states of all tokens, read `step` at a time.
  std::vector<float> hidden(const std::vector<std::int32_t>& ids, int step) {
    const int count = static_cast<int>(ids.size());
    const std::vector<std::int32_t> blocks{1, 0};
    std::vector<float> all;
    for (int begin = 0; begin < count; begin += step) {
      const int rows = std::min(step, count - begin);
      const std::vector<std::int32_t> part(ids.begin() + begin, ids.begin() + begin + rows);
      std::vector<std::int32_t> positions(rows);
      std::iota(positions.begin(), positions.end(), begin);
      const std::vector<AttentionSegment> segments{{blocks.data(), begin, rows, 0}};
      const FloatMatrix x =
          pass_.forward(model_.exec, *model_.view, model_.parallel,
                        {view_of(part), view_of(positions), view_of(segments)}, pages_);
      REQUIRE(x.extent_int(0) == rows);
      REQUIRE(x.extent_int(1) == model_.config.hidden);
      all.insert(all.end(), x.data(), x.data() + x.size());
    }
    return all;
  }

 private:
  static std::int64_t pass_floats(const GoldenModel& m) {
    return InferencePass::floats(m.table, m.parallel, kLength, m.exec.arithmetic);
  }
  static std::int64_t layer_floats(const GoldenModel& m) {
    return layer_page_floats(ActivationShape(m.table, m.parallel.shard()), m.config.head_dim,
                             KvType::kF32);
  }
  static std::int64_t page_floats(const GoldenModel& m) {
    return 2 * m.config.layers * layer_floats(m);
  }
  static MemoryPlan plan(const GoldenModel& m) {
    MemoryPlan plan;
    plan.add("pass", MemoryPhase::kAlways, pass_floats(m) * std::int64_t{sizeof(float)});
    plan.add("pages", MemoryPhase::kAlways, page_floats(m) * std::int64_t{sizeof(float)});
    return plan;
  }

  const GoldenModel& model_;
  MemoryPlan plan_;
  Arena arena_;
  InferencePass pass_;
  PagedLayers pages_;
};

}  // namespace

TEST_CASE("every rank gets the embedding rows of all ids, whichever shard owns them") {
  const Group world = Group::world(MPI_COMM_WORLD);
  for (const std::string name : {"llama_b", "qwen3_a"}) {
    INFO(name);
    if (world.size() > ParamTable(read_model_config(golden_dir(name))).mlp_blocks()) continue;
    const GoldenModel m(name, world);
    const int h = m.config.hidden;
    const auto files = SafetensorsDir::open(golden_dir(name));
    auto ids = some_ids(50, m.config.vocab);
    ids.push_back(0);
    ids.push_back(m.config.vocab - 1);
    std::vector<float> got(ids.size() * h), workspace(2 * got.size()), row(h);
    embed_tokens(m.exec, *m.view, m.parallel, {view_of(ids), {}, {}},
                 make_matrix(got.data(), static_cast<std::int64_t>(ids.size()), h),
                 workspace.data());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      INFO("id " << ids[i]);
      read_rows(files, "model.embed_tokens.weight", ids[i], ids[i] + 1, row);
      CHECK(std::equal(row.begin(), row.end(), got.begin() + static_cast<std::ptrdiff_t>(i) * h));
    }
  }
}

TEST_CASE("hidden states have the same bits for every tensor-parallel degree, token by token too") {
  const Group world = Group::world(MPI_COMM_WORLD), self = Group::self();
  for (const auto& name : kGoldenModels) {
    INFO(name);
    const GoldenModel one(name, self);
    if (world.size() > std::min(one.config.heads, one.table.mlp_blocks())) continue;
    const GoldenModel many(name, world);
    const auto ids = some_ids(kLength, one.config.vocab);
    const auto whole = SequencePass(one).hidden(ids, kLength);
    SequencePass pass(many);
    CHECK(same_bits(pass.hidden(ids, kLength), whole));
    CHECK(same_bits(pass.hidden(ids, 11), whole));
    CHECK(same_bits(pass.hidden(ids, 1), whole));
  }
}

TEST_CASE("hidden states depend on the tokens before them alone") {
  const Group self = Group::self();
  const GoldenModel m("llama_b", self);
  SequencePass pass(m);
  auto ids = some_ids(30, m.config.vocab);
  const auto before = pass.hidden(ids, 30);
  ids[20] = (ids[20] + 1) % m.config.vocab;
  const auto after = pass.hidden(ids, 30);
  const auto split = 20 * m.config.hidden;
  CHECK(std::equal(before.begin(), before.begin() + split, after.begin()));
  CHECK_FALSE(std::equal(before.begin() + split, before.begin() + split + m.config.hidden,
                         after.begin() + split));
}
