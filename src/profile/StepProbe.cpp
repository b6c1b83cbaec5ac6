// SPDX-License-Identifier: Apache-2.0
#include "profile/StepProbe.hpp"

#include <algorithm>
#include <bit>
#include <list>
#include <utility>

#include "base/Bf16.hpp"
#include "base/Error.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "engine/EngineSizing.hpp"
#include "kernels/copy.hpp"
#include "session/MemoryCheck.hpp"
#include "session/SharedArena.hpp"

namespace taper {
namespace {

// Positions that a run of decode steps grows by.
constexpr int kSlack = StepProbe::kLongestRun + StepGraphs::kStepsToRecord;

// Any numbers of the size of keys and values in all of the cache, so that every page is real
// memory.
void fill_pages(const Exec& exec, const BlockPool& pool) {
  std::uint32_t state = 1;
  std::vector<float> values(static_cast<std::size_t>(pool.shape().layer_floats()));
  for (int layer = 0; layer < pool.shape().layers; ++layer)
    for (int block = 0; block < pool.blocks(); ++block) {
      for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
        if (pool.shape().type == KvType::kBf16)
          value = std::bit_cast<float>(to_bf16(value).bits * 0x10001u);  // two of them
      }
      copy_from_host(exec, FloatVector(pool.page(layer, block, 0), values.size()), values);
    }
}

// Guesses without a thought: what a step costs does not depend on whether they are right.
class BlindDrafter : public Drafter {
 public:
  explicit BlindDrafter(int length) : length_(length) {}

  std::vector<std::vector<std::int32_t>> propose(std::span<const DraftAsk> asks,
                                                 const DraftRoom&) override {
    return std::vector(asks.size(), std::vector<std::int32_t>(static_cast<std::size_t>(length_)));
  }
  void observe(const Sequence&, int, std::span<const std::int32_t>) override {}

 private:
  int length_;
};

}  // namespace

struct StepProbe::Side {
  Side(const ParamTable& table, const Ranks& ranks, int degree)
      : parallel(table, ranks.groups.tp_group(degree), ranks.exec.arithmetic) {}

  ModelParallel parallel;
  std::unique_ptr<ModelView> view;
  EngineSetup layout;
};

std::vector<std::string> StepProbeOptions::problems() const {
  std::vector<std::string> list;
  if (max_positions <= kSlack)
    list.push_back("--max-positions is " + std::to_string(max_positions) + " (it must be above " +
                   std::to_string(kSlack) + ", which are measured beyond a context)");
  if (max_batch < 1) list.push_back("max_batch must be at least 1");
  if (step_rows < 1) list.push_back("step_rows must be at least 1");
  if (!(kv_memory_mb > 0)) list.push_back("kv_memory_mb must be positive");
  return list;
}

StepProbe::StepProbe(const StepProbeOptions& options, ModelFiles& files, const Ranks& ranks,
                     const std::vector<int>& degrees)
    : options_(options), files_(&files), ranks_(&ranks) {
  require_no_problems(options.problems(), "profile");
  for (const int degree : degrees)
    sides_[degree] = std::make_unique<Side>(files.table, ranks, degree);
  model_ = std::make_unique<InferenceModel>("model", files, ranks, sides_.begin()->first);
  model_->add_memory(plan_, options.type);
  for (auto& [degree, side] : sides_) {
    const EngineSizing sizing{max_batch(degree), max_tokens(degree), options.kv_memory_mb};
    const EngineNeed need{options.max_positions, files.valid_ids(), "--kv-memory-mb",
                          precision(ranks.exec)};
    side->layout = {nullptr, &side->parallel,
                    engine_options(sizing, need, files.config, side->parallel)};
    memory_.cover(EngineMemory::of(files.table, side->parallel, side->layout.options));
  }
  memory_.add_memory(plan_, plan_.phase("generation"));
}

StepProbe::~StepProbe() = default;

void StepProbe::load() {
  require_memory(*ranks_, plan_, "lower --kv-memory-mb");
  arena_ = make_arena(*ranks_, plan_);
  arena_->populate();
  model_->load(options_.type, *arena_);
  for (auto& [degree, side] : sides_) {
    side->view = std::make_unique<ModelView>(model_->packed(), side->parallel.shard());
    side->layout.view = side->view.get();
  }
  engine_ = std::make_unique<Engine>(ranks_->exec, sides_.begin()->second->layout, memory_, *arena_,
                                     plan_.phase("generation"),
                                     files_->rope_table(options_.max_positions));
  for (const auto& [degree, side] : sides_)
    fill_pages(ranks_->exec, engine_->pool_for(side->layout));
  engine_->begin({}, {});
}

int StepProbe::max_tokens(int degree) const {
  return std::max(options_.step_rows, max_batch(degree));
}

const ModelParallel& StepProbe::parallel(int degree) const {
  return sides_.at(degree)->parallel;
}

std::int64_t StepProbe::max_context(int degree, int tokens, int batch) const {
  const std::int64_t cached = sides_.at(degree)->layout.options.kv_blocks / batch * kPage;
  const std::int64_t most = std::min<std::int64_t>(cached, options_.max_positions);
  return (most - kSlack - (tokens - batch)) * batch + (tokens - batch);
}

// Gives the engine the side's layout and sequences that are `steps_before` decode steps before the
// shape.
void StepProbe::place(const Side& side, const StepShape& shape, int steps_before) {
  std::list<Sequence> running;
  std::int32_t next_block = 0;
  const std::int64_t before = shape.context - (shape.verifies() ? shape.batch : shape.tokens);
  for (int i = 0; i < shape.batch; ++i) {
    const std::int64_t share = before / shape.batch + (i < before % shape.batch);
    Sequence s;
    s.id.prompt = i;
    s.computed = static_cast<int>(std::max<std::int64_t>(0, share - steps_before));
    for (int p = 0; p < s.computed; p += kPage) s.blocks.push_back(next_block++);
    const int fresh = i == 0 && !shape.verifies() ? shape.tokens - shape.batch + 1 : 1;
    s.tokens.resize(s.computed + fresh);
    for (int k = 0; k < s.length(); ++k)
      s.tokens[k] = static_cast<std::int32_t>((31 * i + 7 * k) % side.layout.options.valid_ids);
    // Guesses are for responses: the last token is one.
    s.prompt_length = s.length() - (shape.verifies() ? 1 : 0);
    s.max_new_tokens = options_.max_positions;
    running.push_back(std::move(s));
  }
  engine_->rebind(side.layout, 0, std::move(running), {});
}

std::vector<std::int64_t> StepProbe::measure(int degree, const StepShape& shape, int warm_up,
                                             int steps) {
  TAPER_EXPECT(shape.batch >= 1 && shape.tokens >= shape.batch &&
               shape.context >= (shape.verifies() ? shape.batch : shape.tokens));
  TAPER_EXPECT(warm_up + steps <= kLongestRun);
  const Side& side = *sides_.at(degree);
  BlindDrafter drafter(shape.drafted);
  if (shape.verifies()) engine_->set_drafter(&drafter);
  std::vector<std::int64_t> mine;
  if (shape.decodes()) {
    warm_up += StepGraphs::kStepsToRecord;
    place(side, shape, warm_up + steps / 2);
  }
  barrier(ranks_->world());
  for (int i = 0; i < warm_up + steps; ++i) {
    if (!shape.decodes()) place(side, shape, 0);
    const Timer timer;
    engine_->step();
    if (i >= warm_up) mine.push_back(timer.nanoseconds());
  }
  engine_->rebind(side.layout, 0, {}, {});
  engine_->set_drafter(nullptr);
  std::vector<std::int64_t> all(mine.size() * ranks_->size()), leaders;
  all_gather(ranks_->world(), all, mine);
  for (int rank = 0; rank < ranks_->size(); rank += degree)
    leaders.insert(leaders.end(), all.begin() + rank * steps, all.begin() + (rank + 1) * steps);
  return leaders;
}

}  // namespace taper
