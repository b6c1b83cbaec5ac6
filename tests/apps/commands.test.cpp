// SPDX-License-Identifier: Apache-2.0
//
// The executable as scripts see it: files in, files out, exit codes, and errors that name what is
// wrong.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/Hdf5File.hpp"
#include "io/Json.hpp"
#include "io/RunFile.hpp"

using namespace taper;
namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Outcome {
  int code = -1;
  std::string text;  // stdout and stderr
};

Outcome run(const std::string& arguments, const std::string& environment = "") {
  FILE* pipe = ::popen((environment + " " TAPER_BINARY " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;)
    outcome.text.append(part, n);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return outcome;
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<Json> lines_of(const fs::path& path) {
  std::vector<Json> list;
  JsonLines lines(path);
  for (Json value; lines.next(value);) list.push_back(value);
  return list;
}

// A folder with a tiny model that has a tokenizer of bytes, removed at the end.
struct Scratch {
  Scratch() : path(fs::temp_directory_path() / ("taper-commands-" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
    fs::copy(TAPER_GOLDEN_DIR "/models/llama_a", path / "model");
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
      if (fs::exists(fs::path(TAPER_DATA_DIR "/model") / file))
        fs::copy_file(fs::path(TAPER_DATA_DIR "/model") / file, path / "model" / file);
  }
  ~Scratch() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }

  std::string generate(const std::string& more) const {
    return "generate --model " + *this / "model" + " --prompts " + *this / "in.jsonl" +
           " --output " + *this / "out.jsonl" + " --max-new-tokens 6 " + more;
  }
  std::string score(const std::string& more) const {
    return "score --model " + *this / "model" + " --input " + *this / "in.jsonl" + " --output " +
           *this / "out.jsonl " + more;
  }
  // The command must fail with code 2, name all the words and leave no output.
  void refuses(const std::string& arguments, const std::vector<std::string>& words) const {
    const Outcome outcome = run(arguments);
    INFO(arguments << "\n" << outcome.text);
    CHECK(outcome.code == 2);
    for (const auto& word : words) CHECK_THAT(outcome.text, ContainsSubstring(word));
    CHECK(!fs::exists(*this / "out.jsonl"));
    CHECK(!fs::exists(*this / "out.jsonl.part"));
  }

  fs::path path;
};

void edit_config(const fs::path& model, const char* key, const Json& value) {
  Json config = read_json_file(model / "config.json");
  config[key] = value;
  write(model / "config.json", config.dump());
}

}  // namespace

TEST_CASE("scores come in input order") {
  const Scratch scratch;
  write(scratch / "in.jsonl",
        "{\"tokens\": [5, 9, 200, 7]}\n\n{\"tokens\": [5]}\n{\"tokens\": [5, 9, 200]}\n");
  const Outcome outcome = run(scratch.score(""));
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  const auto lines = lines_of(scratch / "out.jsonl");
  REQUIRE(lines.size() == 3);
  REQUIRE(lines[0]["log_probs"].size() == 4);
  CHECK(lines[0]["log_probs"][0].is_null());
  CHECK(lines[1] == Json{{"log_probs", {nullptr}}});
  CHECK(lines[2]["log_probs"][2] == lines[0]["log_probs"][2]);
  CHECK(lines[0]["log_probs"][1].get<float>() < 0.0f);
}

TEST_CASE("responses are scored as they were written, with the bits of their generation") {
  const Scratch scratch;
  write(scratch / "in.jsonl",
        "{\"prompt\": \"12+34=\"}\n{\"tokens\": [5, 9, 7]}\n{\"prompt\": [{\"role\": \"user\", "
        "\"content\": \"hi\"}], \"ground_truth\": \"as training has it\"}\n");
  const std::string model = scratch / "model", responses = scratch / "responses.jsonl";
  for (const std::string type : {"", "--dtype f32"}) {
    const Outcome generation =
        run("generate --model " + model + " --prompts " + scratch / "in.jsonl" + " --output " +
            responses + " --max-new-tokens 12 --samples 3 --chat-template chatml " + type);
    INFO(generation.text);
    REQUIRE(generation.code == 0);
    const Outcome outcome = run("score --model " + model + " --input " + responses + " --output " +
                                scratch / "scores.jsonl" + " " + type);
    INFO(outcome.text);
    REQUIRE(outcome.code == 0);
    const auto lines = lines_of(responses), scores = lines_of(scratch / "scores.jsonl");
    REQUIRE(lines.size() == 9);
    REQUIRE(scores.size() == 9);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      REQUIRE(lines[i]["log_probs"].size() == lines[i]["tokens"].size());
      CHECK(scores[i]["log_probs"].get<std::vector<float>>() ==
            lines[i]["log_probs"].get<std::vector<float>>());
    }
    CHECK(lines[3]["prompt_tokens"] == Json({5, 9, 7}));
  }
  // The responses are prompts again, too: the same ones.
  const Outcome again = run("generate --model " + model + " --prompts " + responses + " --output " +
                            scratch / "out.jsonl" + " --max-new-tokens 1");
  INFO(again.text);
  REQUIRE(again.code == 0);
  CHECK(lines_of(scratch / "out.jsonl")[3]["prompt_tokens"] == Json({5, 9, 7}));
}

TEST_CASE("responses come in input order with text, log-probs and finish") {
  const Scratch scratch;
  write(scratch / "in.jsonl",
        "{\"prompt\": \"12+34=\"}\n{\"tokens\": [5, 9, 7]}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n");
  const std::string options = "--samples 2 --seed 3 --chat-template chatml";
  const Outcome outcome = run(scratch.generate(options));
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("tokens/s"));
  const auto lines = lines_of(scratch / "out.jsonl");
  REQUIRE(lines.size() == 6);
  for (int i = 0; i < 6; ++i) {
    const Json& line = lines[i];
    CHECK(line["index"] == i / 2);
    CHECK(line["sample"] == i % 2);
    CHECK(line["tokens"].size() == line["log_probs"].size());
    CHECK(line["tokens"].size() <= 6);
    CHECK(line["text"].is_string());
    CHECK(line["finish"] ==
          (line["tokens"].size() == 6 && line["tokens"].back() != 2 ? "length" : "stop"));
  }
  const std::string before = read(scratch / "out.jsonl");
  REQUIRE(run(scratch.generate(options)).code == 0);
  CHECK(read(scratch / "out.jsonl") == before);
  REQUIRE(run(scratch.generate("--samples 2 --seed 4 --chat-template chatml")).code == 0);
  CHECK(read(scratch / "out.jsonl") != before);
}

TEST_CASE("a stop text ends a response") {
  const Scratch scratch;
  write(scratch / "in.jsonl", "{\"prompt\": \"12+34=\"}\n");
  REQUIRE(run(scratch.generate("--temperature 0")).code == 0);
  const Json whole = lines_of(scratch / "out.jsonl").front();
  const Json tokenizer_vocab = read_json_file(scratch / "model/tokenizer.json")["model"]["vocab"];
  std::string stop;  // a token of the response that is one ASCII letter or digit
  std::size_t at = 0;
  for (; at < whole["tokens"].size() && stop.empty(); ++at)
    for (const auto& [text, id] : tokenizer_vocab.items())
      if (id == whole["tokens"][at] && text.size() == 1 &&
          std::isalnum(static_cast<unsigned char>(text[0])) != 0)
        stop = text;
  if (stop.empty()) SKIP("the random model says no letter here");
  REQUIRE(run(scratch.generate("--temperature 0 --stop " + stop)).code == 0);
  const Json cut = lines_of(scratch / "out.jsonl").front();
  CHECK(cut["finish"] == "stop");
  CHECK(cut["tokens"].size() == at);
}

TEST_CASE("a model without tokenizer takes and gives ids") {
  const Scratch scratch;
  fs::remove(scratch / "model/tokenizer.json");
  write(scratch / "in.jsonl", "{\"tokens\": [319, 9, 7]}\n");
  const Outcome outcome = run(scratch.generate("--temperature 0 --dtype f32"));
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK(lines_of(scratch / "out.jsonl").front()["text"].is_null());
  fs::remove(scratch / "out.jsonl");
  write(scratch / "in.jsonl", "{\"prompt\": \"text\"}\n");
  scratch.refuses(scratch.generate(""), {"tokenizer.json", "tokens"});
}

TEST_CASE("bad input is named, with exit code 2 and nothing written") {
  const Scratch scratch;
  const fs::path model = scratch.path / "model";
  write(scratch / "in.jsonl", "{\"tokens\": [5, 9, 7]}\n");

  SECTION("no model") {
    fs::remove_all(model);
    scratch.refuses(scratch.generate(""), {"config.json"});
    scratch.refuses(scratch.score(""), {"config.json"});
  }
  SECTION("cut weights") {
    const fs::path file = model / "model-00002-of-00002.safetensors";
    fs::resize_file(file, fs::file_size(file) / 2);
    scratch.refuses(scratch.generate(""), {"model-00002-of-00002.safetensors"});
    scratch.refuses(scratch.score(""), {"model-00002-of-00002.safetensors"});
  }
  SECTION("a tokenizer of another model") {
    edit_config(model, "vocab_size", 100);
    scratch.refuses(scratch.generate(""), {"tokenizer.json", "vocab_size"});
  }
  SECTION("another architecture") {
    edit_config(model, "model_type", "gpt2");
    scratch.refuses(scratch.generate(""), {"config.json", "model_type", "gpt2"});
  }
  SECTION("too long a prompt") {
    std::string ids = "0";
    for (int i = 1; i < 256; ++i) ids += ", 7";
    write(scratch / "in.jsonl", "{\"tokens\": [1]}\n{\"tokens\": [" + ids + "]}\n");
    scratch.refuses(scratch.generate(""), {"in.jsonl:2", "256"});
    CHECK(run(scratch.score("")).code == 0);  // the context is full, and that is all right
    fs::remove(scratch / "out.jsonl");
    write(scratch / "in.jsonl", "{\"tokens\": [" + ids + ", 7]}\n");
    scratch.refuses(scratch.score(""), {"in.jsonl:1", "257"});
  }
  SECTION("ids that do not exist") {
    write(scratch / "in.jsonl", "{\"tokens\": [5, 320]}\n");
    scratch.refuses(scratch.score(""), {"in.jsonl:1", "320"});
    scratch.refuses(scratch.generate(""), {"in.jsonl:1", "320"});
  }
  SECTION("layouts") {
    scratch.refuses(scratch.generate("--layout 2x1"), {"--layout 2x1", "2 ranks"});
    scratch.refuses(scratch.generate("--layout 2by1"), {"2by1"});
  }
  SECTION("options") {
    scratch.refuses(scratch.generate("--temprature 1"), {"--temprature", "--temperature"});
    scratch.refuses(scratch.generate("--mode sometimes"), {"--mode", "static"});
    scratch.refuses(scratch.generate("--mode adaptive"), {"--profile"});
    scratch.refuses(scratch.generate("--mode adaptive --profile missing.h5"), {"missing.h5"});
    scratch.refuses(scratch.generate("--samples 0"), {"--samples"});
    scratch.refuses(scratch.generate("--min-p 1.5"), {"--min-p", "1.5"});
    scratch.refuses(scratch.generate("--min-p -0.5"), {"--min-p"});
    scratch.refuses(scratch.generate("--samples 2 --temperature 0"), {"--samples is 2", "greedy"});
    scratch.refuses("eval --model " + model.string() + " --samples 2",
                    {"--samples is 2", "--temperature 0"});
    scratch.refuses(scratch.generate("--kv-memory-mb 0.01"), {"--kv-memory-mb is 0.01"});
    scratch.refuses("eval --model " + model.string() + " --kv-memory-mb 0.01",
                    {"--kv-memory-mb is 0.01"});
    scratch.refuses("generate --model " + model.string(), {"--prompts"});
    scratch.refuses("eval --model " + model.string() + " --prompts x", {"--rule"});
    scratch.refuses("eval --model " + model.string() + " --task chess", {"chess"});
  }
  SECTION("broken lines") {
    write(scratch / "in.jsonl", "{\"tokens\": [5]}\n{\"tokens\": [5\n");
    scratch.refuses(scratch.generate(""), {"in.jsonl:2", "JSON"});
    scratch.refuses(scratch.score(""), {"in.jsonl:2", "JSON"});
    write(scratch / "in.jsonl", "{\"prompt\": \"text\"}\n");
    scratch.refuses(scratch.score(""), {"in.jsonl:1", "tokens"});
  }
  SECTION("an output that cannot be") {
    const Outcome outcome = run(scratch.generate("") + " --output " + model.string());
    CHECK(outcome.code == 2);
    fs::create_directories(scratch / "out.jsonl");
    const Outcome directory = run(scratch.score(""));
    CHECK(directory.code == 2);
    CHECK_THAT(directory.text, ContainsSubstring("is a directory"));
  }
}

TEST_CASE("eval prints and writes its figures") {
  const Scratch scratch;
  const Outcome outcome = run("eval --model " + scratch / "model" +
                              " --task mix --count 12 --samples 2 --temperature 1 "
                              "--max-new-tokens 8 --output " +
                              scratch / "eval.json");
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("pass@2") && ContainsSubstring("maj@2"));
  const Json figures = read_json_file(scratch / "eval.json");
  CHECK(figures["tasks"]["all"]["prompts"] == 12);
  CHECK(figures["tasks"].contains("sum"));
  CHECK(figures["tasks"]["all"]["pass@1"] == figures["tasks"]["all"]["avg@2"]);
}

TEST_CASE("profile writes a file that inspect prints, and does not measure it twice") {
  const Scratch scratch;
  const std::string words = "profile --model " + scratch / "model" + " --output " +
                            scratch / "p.h5" +
                            " --max-positions 64 --max-batch 2 --kv-memory-mb 4 --budget 0.001";
  Outcome outcome = run(words);
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("decode steps"));
  CHECK(!fs::exists(scratch / "p.h5.partial"));
  outcome = run("inspect " + scratch / "p.h5");
  CHECK(outcome.code == 0);
  for (const char* part : {"latency profile of 1 ranks", "checksum is right", "decode steps",
                           "hidden ", "library MPICH"})
    CHECK_THAT(outcome.text, ContainsSubstring(part));
  outcome = run(words);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("is complete"));

  std::string damaged = read(scratch / "p.h5");
  damaged[damaged.size() / 2] ^= 0x55;
  write(scratch / "damaged.h5", damaged);
  CHECK(run("inspect " + scratch / "damaged.h5").code == 2);
}

TEST_CASE("profile refuses what cannot be measured") {
  const Scratch scratch;
  const auto words = [&](const std::string& model, const std::string& output) {
    return "profile --budget 0.001 --model " + model + " --output " + output;
  };
  scratch.refuses("profile", {"--model"});
  scratch.refuses(words(scratch / "nothing", scratch / "p.h5"), {"nothing"});
  scratch.refuses(words(scratch / "model", scratch / "model"), {"is a directory"});
  scratch.refuses(words(scratch / "model", scratch / "model/config.json/p.h5"),
                  {"p.h5", "cannot be written"});
  const std::string good = words(scratch / "model", scratch / "p.h5");
  scratch.refuses(good + " --layouts 2x1", {"2x1", "2 ranks"});
  scratch.refuses(good + " --layouts wide", {"wide"});
  scratch.refuses(good + " --max-positions 5", {"max_positions"});
  scratch.refuses(good + " --max-positions 100000", {"positions"});
  scratch.refuses(good + " --kv-memory-mb 0.001", {"KV"});
  scratch.refuses(good + " --budget -1", {"budget"});
  CHECK(!fs::exists(scratch / "p.h5"));
}

TEST_CASE("inspect shows files, and damage") {
  const Scratch scratch;
  const fs::path file = scratch.path / "run.h5";
  {
    RunFile out(file);
    out.set_config("Run: {Seed: 1}");
    for (int i = 1; i <= 400; ++i)
      out.add_metrics(i, {{"critic/score/mean", 0.25 * i}, {"actor/loss", 1.0 / i}});
    out.save();
  }
  Outcome outcome = run("inspect " + file.string());
  INFO(outcome.text);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("metrics/") && ContainsSubstring("mean (400)") &&
                               ContainsSubstring("0.25, 0.5"));

  const std::string bytes = read(file);
  std::string flipped = bytes;
  const double value = 0.25 * 300;  // stands in the middle of a checksummed array
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  REQUIRE(at != std::string::npos);
  flipped[at] ^= 1;
  write(file, flipped);
  outcome = run("inspect " + file.string());
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.text,
             ContainsSubstring("run.h5") && ContainsSubstring("/metrics/critic/score/mean"));

  write(file, bytes.substr(0, bytes.size() / 2));
  outcome = run("inspect " + file.string());
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.text, ContainsSubstring("run.h5") && ContainsSubstring("damaged"));
  CHECK(run("inspect " + scratch / "nothing").code == 2);
  CHECK(run("inspect").code == 2);

  const Outcome model = run("inspect " + scratch / "model");
  CHECK(model.code == 0);
  CHECK_THAT(model.text, ContainsSubstring("llama"));
}

TEST_CASE("a run file is rebuilt from the metrics log") {
  const Scratch scratch;
  {
    MetricsLog log(scratch / "metrics.jsonl", OpenMode::kTruncate);
    for (int i = 1; i <= 3; ++i) log.append({{"critic/score/mean", 0.5 * i}}, i);
  }
  write(scratch / "run.h5", "no HDF5 file");
  CHECK(run("inspect " + scratch.path.string()).code == 2);
  const Outcome outcome = run("inspect --repair " + scratch.path.string());
  INFO(outcome.text);
  CHECK(outcome.code == 0);
  CHECK(Hdf5File::open_read(scratch / "run.h5").read<double>("/metrics/critic/score/mean").values ==
        std::vector<double>{0.5, 1.0, 1.5});
  CHECK(run("inspect " + scratch.path.string()).code == 0);
}

TEST_CASE("inspect checks the runs and checkpoints of taper train") {
  const Scratch scratch;
  std::string words = "train";
  for (const std::string& value :
       {"Model/Directory=" + scratch / "model", "Output/Directory=" + scratch / "run",
        std::string("Rollout/Prompts=2"), std::string("Rollout/Samples Per Prompt=2"),
        std::string("Rollout/Max New Tokens=8"), std::string("Training/Iterations=1")})
    words += " --set \"" + value + "\"";
  const Outcome training = run(words);
  INFO(training.text);
  REQUIRE(training.code == 0);
  const fs::path checkpoint = scratch.path / "run/checkpoints/iter_000001";
  Outcome outcome = run("inspect " + scratch / "run");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("iter_000001: whole") &&
                               ContainsSubstring("response_length") &&
                               ContainsSubstring("completed"));
  outcome = run("inspect " + checkpoint.string());
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("after iteration 1"));
  const std::string rollouts = scratch / "run/rollouts/iter_000001.h5";
  CHECK(run("inspect " + rollouts).code == 0);
  CHECK_THAT(run("inspect " + scratch / "run").text,
             ContainsSubstring("rollouts: 1 files, iterations 1 to 1, 4 samples: whole"));

  // As text: by the model of the run, or a named one; a task's prompt ends with '='.
  for (const std::string& path :
       {rollouts, scratch / "run", rollouts + " --model " + scratch / "model"}) {
    outcome = run("inspect " + path + " --text 3");
    INFO(outcome.text);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.text, ContainsSubstring("iteration 1, 4 samples") &&
                                 ContainsSubstring("prompt 1, sample 0: score 0") &&
                                 !ContainsSubstring("prompt 1, sample 1") &&
                                 ContainsSubstring("=\n[response]\n"));
  }
  CHECK(run("inspect " + scratch / "model" + " --text 1").code == 2);
  CHECK(run("inspect " + rollouts + " --model x").code == 2);

  const std::string good = read(rollouts);
  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  bad.resize(bad.size() - 8);
  write(rollouts, bad);
  for (const std::string& path : {scratch / "run", rollouts + " --text 1"}) {
    outcome = run("inspect " + path);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.text, ContainsSubstring("iter_000001.h5"));
  }
  write(rollouts, good);

  std::string weights = read(checkpoint / "model.safetensors");
  weights[weights.size() / 2] ^= 1;
  write(checkpoint / "model.safetensors", weights);
  for (const auto& path : {checkpoint, scratch.path / "run"}) {
    outcome = run("inspect " + path.string());
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.text, ContainsSubstring("model.safetensors"));
  }
  write(checkpoint / "manifest.json", "{}");
  CHECK(run("inspect " + checkpoint.string()).code == 2);
}

TEST_CASE("report names the interpreter that is missing") {
  const Outcome outcome = run("report /nowhere", "TAPER_PYTHON=/nowhere/python");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.text,
             ContainsSubstring("/nowhere/python") && ContainsSubstring("TAPER_PYTHON"));
}
