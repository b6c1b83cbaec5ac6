// SPDX-License-Identifier: Apache-2.0
//
// Directories are made by hand here; tests/checkpoint/WriteExits.test.cpp reads real ones.
#include "instance/ExitFiles.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "io/Json.hpp"
#include "support/Messages.hpp"
#include "support/Scratch.hpp"

using namespace taper;
using namespace taper::test;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const fs::path kModel = TAPER_DATA_DIR "/model";
const std::vector<std::int32_t> kIds{0, 7, 65, 200};

// Early exits of the embedded model, which has four layers, without weights.
struct Directory {
  explicit Directory(const std::vector<int>& layers = {1, 3}) {
    write_list({{"layers", layers}, {"ids", kIds}});
    for (const int count : layers) write_head(count);
  }
  void write_list(const Json& list) const {
    spill(ExitFiles::list_file(scratch.path()), list.dump());
  }
  void write_head(int layers, const Json& changes = Json::object()) const {
    Json config = read_json_file(kModel / "config.json");
    config["num_hidden_layers"] = 0;
    config["vocab_size"] = kIds.size();
    config.update(changes);
    const fs::path head = ExitFiles::head_directory(scratch.path(), layers);
    fs::create_directories(head);
    spill(head / "config.json", config.dump());
  }
  ExitFiles read() const { return {scratch.path(), "--early-exits", model}; }
  std::string error() const {
    return message_of([&] { read(); });
  }

  Scratch scratch;
  ModelFiles model{kModel};
};

}  // namespace

TEST_CASE("early exits say behind how many layers they are, and which ids they know") {
  const Directory d;
  const ExitFiles files = d.read();
  CHECK(files.layers() == std::vector<int>{1, 3});
  CHECK(files.ids() == kIds);
  REQUIRE(files.heads().size() == 2);
  CHECK(files.heads().front().directory == d.scratch / "layer-1");
  CHECK(files.heads().back().directory == d.scratch / "layer-3");
  for (const ModelFiles& head : files.heads()) {
    CHECK(head.config.vocab == std::ssize(kIds));
    CHECK(head.config.hidden == d.model.config.hidden);
    CHECK(head.table.tensors().size() == 2);  // embedding and norm
  }
}

TEST_CASE("the text of a list is one that is read") {
  const Directory d(std::vector<int>{2});
  const std::vector<std::int32_t> ids{3, 4, 100, 131};
  spill(d.scratch / "exits.json", ExitFiles::list_text({2}, ids));
  const ExitFiles files = d.read();
  CHECK(files.layers() == std::vector<int>{2});
  CHECK(files.ids() == ids);
}

TEST_CASE("a directory without a list is refused, with the option that names it") {
  const Directory d;
  fs::remove(d.scratch / "exits.json");
  for (const fs::path& directory : {d.scratch.path(), kModel})
    CHECK_THAT(message_of([&] { ExitFiles(directory, "--early-exits", d.model); }),
               ContainsSubstring("--early-exits") && ContainsSubstring(directory.string()) &&
                   ContainsSubstring("no exits.json") && ContainsSubstring("taper exits"));
  CHECK_THAT(message_of([&] { ExitFiles("/nowhere/exits", "--early-exits", d.model); }),
             ContainsSubstring("--early-exits is /nowhere/exits (no such file or directory)"));
}

TEST_CASE("a list that is broken is refused, with its key") {
  const Directory d;
  const std::string list = (d.scratch / "exits.json").string();
  const auto says = [&](const Json& json, const std::string& key) {
    INFO(json.dump());
    d.write_list(json);
    CHECK_THAT(d.error(), ContainsSubstring(list) && ContainsSubstring("'" + key + "'") &&
                              ContainsSubstring("taper exits"));
  };
  says({{"ids", kIds}}, "layers");
  says({{"layers", {1, 3}}}, "ids");
  says({{"layers", "1, 3"}, {"ids", kIds}}, "layers");
  says({{"layers", {1, 3}}, {"ids", {0, "7"}}}, "ids");
  says(Json::array(), "layers");
  spill(list, "{\"layers\": [1, 3], \"ids\": [0, ");
  CHECK_THAT(d.error(), ContainsSubstring(list));
}

TEST_CASE("layers have to be some of the model, ascending") {
  const Directory d;
  const auto says = [&](const std::vector<int>& layers, const std::string& text) {
    d.write_list({{"layers", layers}, {"ids", kIds}});
    const std::string list = (d.scratch / "exits.json").string();
    CHECK_THAT(d.error(),
               ContainsSubstring(list) && ContainsSubstring("layers is " + text + " (") &&
                   ContainsSubstring(kModel.string()) && ContainsSubstring("has 4 layers") &&
                   ContainsSubstring("behind 1 to 3 of them"));
    CHECK_THAT(message_of([&] { ExitFiles::require_layers(layers, d.model, "--layers"); }),
               ContainsSubstring("--layers is " + text + " (") &&
                   ContainsSubstring("has 4 layers") && ContainsSubstring("in this order"));
  };
  says({}, "");
  says({0, 1}, "0, 1");
  says({-1, 1}, "-1, 1");
  says({3, 1}, "3, 1");
  says({1, 1}, "1, 1");
  says({1, 4}, "1, 4");
  for (const std::vector<int>& layers : {std::vector<int>{1}, {3}, {1, 2, 3}})
    CHECK(message_of([&] { ExitFiles::require_layers(layers, d.model, "--layers"); }).empty());
}

TEST_CASE("ids have to be those of the model, ascending") {
  const Directory d;
  const std::int32_t end = d.model.valid_ids();
  for (const std::vector<std::int32_t>& ids : {std::vector<std::int32_t>{},
                                               {-1, 7, 65, 200},
                                               {0, 65, 7, 200},
                                               {0, 7, 7, 200},
                                               {0, 7, 65, end}}) {
    d.write_list({{"layers", {1, 3}}, {"ids", ids}});
    CHECK_THAT(d.error(), ContainsSubstring((d.scratch / "exits.json").string()) &&
                              ContainsSubstring("ascending ids below " + std::to_string(end)) &&
                              ContainsSubstring(kModel.string()) &&
                              ContainsSubstring("make exits of this model"));
  }
  d.write_list({{"layers", {1, 3}}, {"ids", {0, 7, 65, end - 1}}});
  CHECK(d.error().empty());
}

TEST_CASE("a head has no layers, and rows as long as those of the model, one for each id") {
  const Directory d;
  const std::string head = (d.scratch / "layer-3").string();
  for (const Json& changes : {Json{{"num_hidden_layers", 1}}, Json{{"tie_word_embeddings", false}},
                              Json{{"hidden_size", 128}}, Json{{"vocab_size", 5}}}) {
    INFO(changes.dump());
    d.write_head(3, changes);
    CHECK_THAT(d.error(), ContainsSubstring(head) && ContainsSubstring("no head of an exit") &&
                              ContainsSubstring("4 x 256") && ContainsSubstring("taper exits"));
  }
  d.write_head(3);
  CHECK(d.error().empty());
  fs::remove_all(head);
  CHECK_THAT(d.error(), ContainsSubstring("--early-exits") && ContainsSubstring(head));
}
