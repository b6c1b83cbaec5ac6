// SPDX-License-Identifier: Apache-2.0
#include "rollout/GenerationRecord.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "io/Hdf5File.hpp"
#include "results/FileSchema.hpp"
#include "results/MetricTable.hpp"
#include "results/SchemaCheck.hpp"

using namespace taper;

namespace {

const DivisorChain kChain({1, 2, 4});

GenerationReport example() {
  const Layout apart = parse_layout("1x4", kChain), mixed = parse_layout("2+1+1", kChain);
  GenerationReport report{apart, mixed, 3.5, 7, 0.002};
  const Plan stay{apart, PlanStart::kNow, 0, Repack::kNo},
      go{mixed, PlanStart::kBelow, 9, Repack::kNo};
  Decision decision{.act = false, .plan = go, .prices = {}, .reason = "later", .hash = 1};
  decision.prices.push_back({stay, {2'000'000'000, 1, 2}, {}, 0});
  decision.prices.push_back({go, {1'500'000'000, 1, 2}, {500'000'000, 100'000'000, 1}, 7'000'000});
  report.decisions.push_back(
      {{apart, std::vector<ReplicaSnapshot>(4), 250'000'000, 3, 0}, decision});
  const Plan now{mixed, PlanStart::kNow, 0, Repack::kNo};
  SwitchRecord change{now, apart, Confirmation(), ReshapeReport(), 1.25, 0.001, 0.004, 12};
  change.report.done = true;
  change.report.bytes_planned = 4096;
  change.confirmation.cost.move = 3'000'000;
  report.switches.push_back(change);
  StepReport step;
  step.decode_rows = 5;
  step.drafted_rows = 5;
  step.accepted = 2;
  report.speculation.add(step, 3'000'000, 1'000'000);
  step.decode_rows = 7;
  step.drafted_rows = 11;
  step.accepted = 2;
  report.speculation.add(step, 2'000'000, 500'000);
  step = {};
  step.decode_rows = 8;
  step.drafted_rows = 4;
  step.accepted = 1;
  report.speculation.add(step, 1'000'000, 0);
  report.speculation.sources[1] = {20, 5};
  return report;
}

double value(const MetricValues& values, const std::string& name) {
  for (const auto& [key, v] : values)
    if (key == name) return v;
  return -1;
}

GeneratorOptions options(PlannerMode mode, SpeculationMode speculation) {
  GeneratorOptions o;
  o.mode = mode;
  o.speculation.mode = speculation;
  return o;
}

}  // namespace

TEST_CASE("totals of a generation") {
  const std::vector<GenerationReport> reports{example(), example()};
  CHECK(generation_metrics(options(PlannerMode::kStatic, SpeculationMode::kOff), reports).empty());
  const MetricValues drafts =
      generation_metrics(options(PlannerMode::kStatic, SpeculationMode::kAuto), reports);
  for (const auto& [name, unused] : drafts) CHECK(meaning_of("/metrics/" + name) != nullptr);
  CHECK(value(drafts, "speculation/tokens_per_step") == 1.25);
  CHECK(value(drafts, "speculation/drafted") == 40);
  CHECK(value(drafts, "speculation/accepted") == 10);
  CHECK(value(drafts, "speculation/acceptance") == 0.25);
  CHECK(value(drafts, "adaptive/switches") == -1);
}

TEST_CASE("totals of a generation that changes its layout") {
  const std::vector<GenerationReport> reports{example()};
  const MetricValues m =
      generation_metrics(options(PlannerMode::kAdaptive, SpeculationMode::kOff), reports);
  for (const auto& [name, unused] : m) CHECK(meaning_of("/metrics/" + name) != nullptr);
  CHECK(value(m, "adaptive/switches") == 1);
  CHECK(value(m, "adaptive/switch_time_s") == 0.004);
  CHECK(value(m, "adaptive/consultations") == 7);
  CHECK(value(m, "adaptive/consult_time_s") == 0.002);
  CHECK(value(m, "adaptive/kv_bytes_moved") == 4096);
}

TEST_CASE("generations in which a change was advised are counted in that mode alone") {
  std::vector<GenerationReport> reports{example(), example()};
  const auto advised = [&](PlannerMode mode) {
    return value(generation_metrics(options(mode, SpeculationMode::kOff), reports),
                 "adaptive/advised");
  };
  CHECK(advised(PlannerMode::kAdvise) == 0);
  reports.back().decisions.front().decision.pays = true;
  CHECK(advised(PlannerMode::kAdvise) == 1);
  CHECK(advised(PlannerMode::kAdaptive) == -1);
}

TEST_CASE("the account of a generation in run.h5") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("taper-record-" + std::to_string(::getpid()) + ".h5");
  {
    RunFile file(path);
    GenerationReport report = example();
    report.review.emplace();
    report.review->degrees = {1, 4};
    report.review->static_ns = {2'000'000'000, 1'500'000'000};
    add_generations(file, 5, options(PlannerMode::kAdaptive, SpeculationMode::kFixed),
                    std::vector{report, report});
    file.save();
  }
  const SchemaReport schema = check_schema(path);
  CHECK(schema.faults == std::vector<std::string>{});
  CHECK(schema.notes == std::vector<std::string>{});
  const Hdf5File file = Hdf5File::open_read(path);
  using Integers = std::vector<std::int64_t>;
  using Texts = std::vector<std::string>;
  CHECK(file.read_strings("/layout_generations/first_layout") == Texts{"1x4", "1x4"});
  CHECK(file.read_strings("/layout_generations/last_layout") == Texts{"2+1+1", "2+1+1"});
  CHECK(file.read_strings("/layout_consultations/layout") == Texts{"1x4", "1x4"});
  CHECK(file.read_strings("/layout_consultations/plan_layout") == Texts{"2+1+1", "2+1+1"});
  CHECK(file.read<double>("/layout_consultations/saving_mean_s").values ==
        std::vector<double>{0.5, 0.5});
  CHECK(file.read<double>("/layout_prices/rest_mean_s").values ==
        std::vector<double>{2.0, 1.5, 2.0, 1.5});
  CHECK(file.read<std::int64_t>("/layout_prices/generation").values == Integers{0, 0, 1, 1});
  CHECK(file.read<std::int64_t>("/layout_prices/chosen").values == Integers{0, 1, 0, 1});
  CHECK(file.read_strings("/layout_switches/to") == Texts{"2+1+1", "2+1+1"});
  CHECK(file.read<double>("/layout_switches/predicted_move_s").values ==
        std::vector<double>{0.003, 0.003});
  CHECK(file.read<double>("/layout_accounts/static_tp4_s").values == std::vector<double>{1.5, 1.5});
  CHECK(file.read<std::int64_t>("/draft_batches/generation").values == Integers{0, 0, 1, 1});
  CHECK(file.read<std::int64_t>("/draft_batches/least_batch").values == Integers{4, 8, 4, 8});
  CHECK(file.read<std::int64_t>("/draft_batches/steps").values == Integers{2, 1, 2, 1});
  CHECK(file.read<std::int64_t>("/draft_batches/sequences").values == Integers{12, 8, 12, 8});
  CHECK(file.read<std::int64_t>("/draft_batches/drafted").values == Integers{16, 4, 16, 4});
  CHECK(file.read<std::int64_t>("/draft_batches/accepted").values == Integers{4, 1, 4, 1});
  CHECK(file.read<double>("/draft_batches/time_s").values ==
        std::vector<double>{0.005, 0.001, 0.005, 0.001});
  CHECK(file.read<double>("/draft_batches/model_s").values ==
        std::vector<double>{0.0015, 0, 0.0015, 0});
  CHECK(file.read_strings("/draft_sources/source") ==
        Texts{"self", "prompt", "run", "self", "prompt", "run"});
  CHECK(file.read<std::int64_t>("/draft_sources/drafted").values == Integers{0, 20, 0, 0, 20, 0});
  for (const RecordTable& table : generation_tables()) {
    if (!file.exists("/" + table.name)) continue;
    for (const std::string& name : file.datasets("/" + table.name)) {
      INFO(name);
      CHECK((name.ends_with("/step") || column_rule(name) != nullptr));
    }
  }
  std::filesystem::remove(path);
}
