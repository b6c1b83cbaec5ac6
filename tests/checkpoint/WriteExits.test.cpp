// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/WriteExits.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <iterator>

#include "checkpoint/Pieces.hpp"
#include "instance/ExitFiles.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
namespace fs = std::filesystem;

namespace {

// Every so many ids from `first` on.
std::vector<std::int32_t> some_ids(const ModelFiles& files, int first, int step) {
  std::vector<std::int32_t> ids;
  for (int id = first; id < files.config.vocab; id += step) ids.push_back(id);
  return ids;
}

// A matrix that is stored by blocks of the vocabulary, padding included.
std::vector<float> matrix_of(const ModelFiles& files, ParamRole role) {
  const HuggingFaceReader reader = files.open_weights();
  const int tensor = files.table.index_of(role);
  std::vector<float> all;
  for (int unit = 0; unit < files.table.vocab_blocks(); ++unit) {
    const auto block = read_piece(files, reader, files.table.first_piece(tensor) + unit);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

std::vector<float> norm_of(const ModelFiles& files) {
  return read_piece(files, files.open_weights(),
                    files.table.first_piece(files.table.index_of(ParamRole::kFinalNorm)));
}

// How many rows of the head are those of the model for these ids.
int same_rows(const ModelFiles& head, const ModelFiles& model,
              const std::vector<std::int32_t>& ids) {
  const std::vector<float> rows = matrix_of(head, ParamRole::kEmbedding),
                           all = matrix_of(
                               model, model.config.tied ? ParamRole::kEmbedding : ParamRole::kHead);
  const std::ptrdiff_t h = model.config.hidden;
  int same = 0;
  for (std::ptrdiff_t i = 0; i < std::ssize(ids); ++i)
    same += std::equal(rows.begin() + i * h, rows.begin() + (i + 1) * h,
                       all.begin() + ids[static_cast<std::size_t>(i)] * h);
  return same;
}

int entries(const fs::path& directory) {
  return static_cast<int>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a head has the model's rows for its ids, and a quarter of its norm") {
  const Scratch scratch;
  for (const char* name : {"llama_a", "qwen2_a", "llama_b", "qwen3_b"})
    for (const int step : {1, 3, 50}) {
      INFO(name << ", every id of " << step);
      const ModelFiles model(TAPER_GOLDEN_DIR "/models/" + std::string(name));
      const std::vector<std::int32_t> ids = some_ids(model, step == 1 ? 0 : 2, step);
      write_exits(model, {1}, ids, scratch / "exits");
      const ExitFiles files(scratch / "exits", "--early-exits", model);
      CHECK(files.layers() == std::vector<int>{1});
      CHECK(files.ids() == ids);
      REQUIRE(files.heads().size() == 1);
      const ModelFiles& head = files.heads().front();
      CHECK(head.config.family == model.config.family);
      CHECK(head.config.norm_eps == model.config.norm_eps);
      CHECK(head.config.eos_ids.empty());
      CHECK_FALSE(head.config.bos_id.has_value());
      CHECK(same_rows(head, model, ids) == static_cast<int>(ids.size()));
      std::vector<float> expected = norm_of(model);
      for (float& value : expected) value *= 0.25f;
      CHECK(norm_of(head) == expected);
    }
}

TEST_CASE("the rows that fill up the last block of a head are zero") {
  const Scratch scratch;
  const ModelFiles model(TAPER_GOLDEN_DIR "/models/llama_b");
  const std::vector<std::int32_t> ids = some_ids(model, 1, 2);
  REQUIRE(ids.size() > 2 * std::size_t{kVocabBlock});
  REQUIRE(ids.size() % kVocabBlock != 0);
  write_exits(model, {1}, ids, scratch / "exits");
  const ModelFiles head(ExitFiles::head_directory(scratch / "exits", 1), "exits",
                        {.of_exit = true});
  REQUIRE(head.table.vocab_blocks() == 3);
  const std::vector<float> rows = matrix_of(head, ParamRole::kEmbedding);
  const auto end = rows.begin() + std::ssize(ids) * head.config.hidden;
  CHECK(std::all_of(end, rows.end(), [](float value) { return value == 0.0f; }));
  CHECK(std::any_of(end - head.config.hidden, end, [](float value) { return value != 0.0f; }));
}

TEST_CASE("exits that were there before are replaced as a whole") {
  const Scratch scratch;
  const ModelFiles model(TAPER_DATA_DIR "/model");
  REQUIRE(model.config.layers == 4);
  const fs::path directory = scratch / "exits";
  const auto first = some_ids(model, 0, 5), second = some_ids(model, 1, 3);
  std::vector<std::int32_t> valid;  // rows beyond the tokenizer's ids are padding
  std::copy_if(second.begin(), second.end(), std::back_inserter(valid),
               [&](std::int32_t id) { return id < model.valid_ids(); });
  write_exits(model, {1, 3}, {first.begin(), first.begin() + 20}, directory);
  CHECK(ExitFiles(directory, "--early-exits", model).layers() == std::vector<int>{1, 3});
  spill(directory / "left over", "");
  write_exits(model, {2}, valid, directory / "");  // as a shell completes it
  const ExitFiles files(directory, "--early-exits", model);
  CHECK(files.layers() == std::vector<int>{2});
  CHECK(files.ids() == valid);
  CHECK(same_rows(files.heads().front(), model, valid) == static_cast<int>(valid.size()));
  CHECK(entries(directory) == 2);       // exits.json and layer-2
  CHECK(entries(scratch.path()) == 1);  // nothing beside it
}
