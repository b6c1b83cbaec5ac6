// SPDX-License-Identifier: Apache-2.0
//
// taper generate, score and eval: files in, files out, exit codes, and errors that name what is
// wrong.
#include <algorithm>
#include <cctype>

#include "Commands.hpp"

using namespace taper;
using namespace taper::commands;

namespace {

constexpr const char* kLine = "{\"tokens\": [5, 9, 7]}\n";
const std::string kChatMl = "--chat-template " TAPER_DATA_DIR "/chat_templates/chatml.jinja ";

void edit_config(const fs::path& model, const char* key, const Json& value) {
  Json config = read_json_file(model / "config.json");
  config[key] = value;
  spill(model / "config.json", config.dump());
}

}  // namespace

TEST_CASE("scores come in input order") {
  const Scratch scratch;
  spill(scratch / "in.jsonl",
        "{\"tokens\": [5, 9, 200, 7]}\n\n{\"tokens\": [5]}\n{\"tokens\": [5, 9, 200]}\n");
  const Outcome outcome = run(scratch.score(""));
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text,
             ContainsSubstring("completed: 3 sequences, results in " + scratch / "out.jsonl"));
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
  spill(scratch / "in.jsonl",
        "{\"prompt\": \"12+34=\"}\n{\"tokens\": [5, 9, 7]}\n{\"prompt\": [{\"role\": \"user\", "
        "\"content\": \"hi\"}], \"ground_truth\": \"as training has it\"}\n");
  const std::string model = scratch / "model", responses = scratch / "responses.jsonl";
  for (const std::string type : {"", "--dtype f32", "--arithmetic bf16 --cache-type bf16",
                                 "--arithmetic bf16-dot --cache-type bf16"}) {
    const Outcome generation =
        run("generate --model " + model + " --prompts " + scratch / "in.jsonl" + " --output " +
            responses + " --max-new-tokens 12 --samples 3 " + kChatMl + type);
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
  spill(scratch / "in.jsonl",
        "{\"prompt\": \"12+34=\"}\n{\"tokens\": [5, 9, 7]}\n"
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n");
  const std::string options = "--samples 2 --seed 3 " + kChatMl;
  const Outcome outcome = run(scratch.generate(options));
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring("tokens/s"));
  CHECK_THAT(outcome.text,
             ContainsSubstring("completed: 6 responses, results in " + scratch / "out.jsonl"));
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
  const std::string before = slurp(scratch / "out.jsonl");
  REQUIRE(run(scratch.generate(options)).code == 0);
  CHECK(slurp(scratch / "out.jsonl") == before);
  REQUIRE(run(scratch.generate("--samples 2 --seed 4 " + kChatMl)).code == 0);
  CHECK(slurp(scratch / "out.jsonl") != before);
}

TEST_CASE("a directory that is created for the output is told") {
  const Scratch scratch;
  spill(scratch / "in.jsonl", "{\"tokens\": [5, 9, 7]}\n");
  const std::string told = "nodir does not exist yet and will be created for out.jsonl";
  const Outcome there = run(scratch.score(""));
  REQUIRE(there.code == 0);
  CHECK_THAT(there.text, !ContainsSubstring("will be created"));
  const Outcome outcome = run("score --model " + scratch / "model" + " --input " +
                              scratch / "in.jsonl" + " --output " + scratch / "nodir/out.jsonl");
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text, ContainsSubstring(told));
  CHECK(fs::exists(scratch / "nodir/out.jsonl"));
}

TEST_CASE("a stop text ends a response") {
  const Scratch scratch;
  spill(scratch / "in.jsonl", "{\"prompt\": \"12+34=\"}\n");
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
  spill(scratch / "in.jsonl", "{\"tokens\": [319, 9, 7]}\n");
  const Outcome outcome = run(scratch.generate("--temperature 0 --dtype f32"));
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK(lines_of(scratch / "out.jsonl").front()["text"].is_null());
  fs::remove(scratch / "out.jsonl");
  spill(scratch / "in.jsonl", "{\"prompt\": \"text\"}\n");
  scratch.refuses(scratch.generate(""), {"tokenizer.json", "tokens"});
}

// Bad input ends with exit code 2 and nothing written.
TEST_CASE("a model that is not there is refused by its name") {
  const Scratch scratch;
  const fs::path model = scratch.path() / "model";
  spill(scratch / "in.jsonl", kLine);
  fs::remove_all(model);
  scratch.refuses(scratch.generate(""),
                  {"--model is " + model.string(), "no such file or directory"});
  scratch.refuses(scratch.score(""), {"--model is " + model.string()});
  scratch.refuses("eval --model nowhere", {"--model is nowhere", "working directory, /"});
}

TEST_CASE("cut weights are refused by the name of the file") {
  const Scratch scratch;
  const fs::path model = scratch.path() / "model";
  spill(scratch / "in.jsonl", kLine);
  const fs::path file = model / "model-00002-of-00002.safetensors";
  fs::resize_file(file, fs::file_size(file) / 2);
  scratch.refuses(scratch.generate(""), {"model-00002-of-00002.safetensors"});
  scratch.refuses(scratch.score(""), {"model-00002-of-00002.safetensors"});
}

TEST_CASE("a tokenizer of another model is refused") {
  const Scratch scratch;
  const fs::path model = scratch.path() / "model";
  spill(scratch / "in.jsonl", kLine);
  edit_config(model, "vocab_size", 100);
  scratch.refuses(scratch.generate(""), {"tokenizer.json", "vocab_size"});
}

TEST_CASE("another architecture is refused") {
  const Scratch scratch;
  const fs::path model = scratch.path() / "model";
  spill(scratch / "in.jsonl", kLine);
  edit_config(model, "model_type", "gpt2");
  scratch.refuses(scratch.generate(""), {"config.json", "model_type", "gpt2"});
}

TEST_CASE("too long a prompt is refused by its line") {
  const Scratch scratch;
  std::string ids = "0";
  for (int i = 1; i < 256; ++i) ids += ", 7";
  spill(scratch / "in.jsonl", "{\"tokens\": [1]}\n{\"tokens\": [" + ids + "]}\n");
  scratch.refuses(scratch.generate(""), {"in.jsonl:2", "256"});
  CHECK(run(scratch.score("")).code == 0);  // the context is full, and that is all right
  fs::remove(scratch / "out.jsonl");
  spill(scratch / "in.jsonl", "{\"tokens\": [" + ids + ", 7]}\n");
  scratch.refuses(scratch.score(""), {"in.jsonl:1", "257"});
}

TEST_CASE("ids that do not exist are refused by their line") {
  const Scratch scratch;
  spill(scratch / "in.jsonl", "{\"tokens\": [5, 320]}\n");
  scratch.refuses(scratch.score(""), {"in.jsonl:1", "320"});
  scratch.refuses(scratch.generate(""), {"in.jsonl:1", "320"});
}

TEST_CASE("layouts that do not fit are refused") {
  const Scratch scratch;
  spill(scratch / "in.jsonl", kLine);
  scratch.refuses(scratch.generate("--layout 2x1"), {"--layout is 2x1", "2 ranks"});
  scratch.refuses(scratch.generate("--layout 2by1"), {"--layout is '2by1'", "TPxDP"});
  scratch.refuses(scratch.score("--layout 2x1"), {"--layout is 2x1", "2 ranks"});
  scratch.refuses(scratch.score("--layout 1+1"), {"--layout is '1+1'", "TPxDP"});
}

TEST_CASE("options that are wrong, or do not go together, are refused") {
  const Scratch scratch;
  const fs::path model = scratch.path() / "model";
  spill(scratch / "in.jsonl", kLine);
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

TEST_CASE("broken lines are refused by their number") {
  const Scratch scratch;
  spill(scratch / "in.jsonl", "{\"tokens\": [5]}\n{\"tokens\": [5\n");
  scratch.refuses(scratch.generate(""), {"in.jsonl:2", "JSON"});
  scratch.refuses(scratch.score(""), {"in.jsonl:2", "JSON"});
  spill(scratch / "in.jsonl", "{\"prompt\": \"text\"}\n");
  scratch.refuses(scratch.score(""), {"in.jsonl:1", "tokens"});
  spill(scratch / "in.jsonl", "{\"prompt\": 3}\n");
  scratch.refuses(scratch.generate(""), {"in.jsonl:1", "'prompt' is 3", "a text or a list"});
  spill(scratch / "in.jsonl", "{\"prompt\": [{\"role\": \"usr\", \"content\": \"x\"}]}\n");
  scratch.refuses(scratch.generate(""), {"in.jsonl:1", "role 'usr'"});
  fs::remove(scratch / "in.jsonl");
  scratch.refuses(scratch.generate(""), {"--prompts is", "in.jsonl"});
  scratch.refuses(scratch.score(""), {"--input is", "in.jsonl"});
}

TEST_CASE("an output that cannot be is refused") {
  const Scratch scratch;
  const fs::path model = scratch.path() / "model";
  spill(scratch / "in.jsonl", kLine);
  const Outcome outcome = run(scratch.generate("") + " --output " + model.string());
  CHECK(outcome.code == 2);
  fs::create_directories(scratch / "out.jsonl");
  const Outcome directory = run(scratch.score(""));
  CHECK(directory.code == 2);
  CHECK_THAT(directory.text, ContainsSubstring("is a directory"));
  fs::remove(scratch / "out.jsonl");
  scratch.refuses("score --model " + model.string() + " --input " + scratch / "in.jsonl" +
                      " --output /dev/stdout",
                  {"/dev/stdout", "device or pipe"});
}

TEST_CASE("a second output that cannot be is refused before the work") {
  const Scratch scratch;
  const fs::path model = scratch.path() / "model";
  spill(scratch / "in.jsonl", kLine);
  scratch.refuses(scratch.generate("--record " + model.string()), {"is a directory"});
  // Before the work: the profile is missing, too.
  scratch.refuses("replay --profile missing.h5 --output " + model.string(), {"is a directory"});
}

TEST_CASE("simulate names what it cannot use") {
  const Scratch scratch;
  spill(scratch / "case.yaml", "Machine:\n  Ranks: 12\n");
  scratch.refuses("simulate missing.yaml", {"CASE", "missing.yaml"});
  scratch.refuses("simulate " + scratch / "case.yaml", {"case.yaml", "Machine/Ranks is 12"});
  scratch.refuses("simulate --set Machine/Rank=2", {"Machine/Rank", "Ranks"});
  scratch.refuses("simulate --vary Machine/Ranks", {"--vary", "Machine/Ranks=64;256"});
  scratch.refuses("simulate --check --set \"Machine/Device/Memory GB=1\"",
                  {"Machine/Device/Memory GB is 1"});
  scratch.refuses("simulate --calibrate missing.h5", {"missing.h5"});
  scratch.refuses("simulate --rounds --placements", {"--rounds and --placements", "choose one"});
  for (const std::string table : {"--calibrate missing.h5", "--rounds", "--placements"})
    scratch.refuses("simulate --output " + scratch / "out.jsonl " + table,
                    {"--output cannot be used with " + table.substr(0, table.find(' ')),
                     "leave one of them out"});
  for (const std::string table : {"--rounds", "--placements"})
    scratch.refuses("simulate --calibrate missing.h5 " + table,
                    {"--calibrate and " + table, "choose one"});
  scratch.refuses("simulate --calibrate missing.h5 --check",
                  {"--check cannot be used with --calibrate", "leave one of them out"});
}

TEST_CASE("replay names what it cannot use") {
  const Scratch scratch;
  spill(scratch / "in.jsonl", kLine);
  scratch.refuses("replay --profile missing.h5", {"missing.h5", "taper profile"});
  scratch.refuses("replay --profile " + scratch / "in.jsonl", {"in.jsonl is not an HDF5 file"});
  scratch.refuses("replay --profile x --law long", {"--law is \"long\"", "heavy-tail"});
  scratch.refuses("replay --profile x --law all --run y", {"--run", "--law"});
  scratch.refuses("replay --profile x --scenarios 3", {"--scenarios is \"3\"", "32 and 64"});
}

TEST_CASE("a limit beyond the context is told once") {
  const Scratch scratch;
  spill(scratch / "in.jsonl", "{\"tokens\": [5, 9, 7]}\n{\"tokens\": [5, 9]}\n");
  const auto generate = [&](const std::string& limit) {
    const Outcome outcome =
        run("generate --model " + scratch / "model" + " --prompts " + scratch / "in.jsonl" +
            " --output " + scratch / "out.jsonl" + " --max-new-tokens " + limit);
    INFO(outcome.text);
    REQUIRE(outcome.code == 0);
    return outcome.text;
  };
  const std::string cut = generate("5000");
  CHECK_THAT(cut, ContainsSubstring("--max-new-tokens is 5000") && ContainsSubstring("holds 256"));
  CHECK(cut.find("--max-new-tokens") == cut.rfind("--max-new-tokens"));
  CHECK_THAT(generate("6"), !ContainsSubstring("--max-new-tokens"));
}

TEST_CASE("errors do not repeat control characters") {
  const Outcome outcome = run("'\x1b[31mtrain'");
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.text, ContainsSubstring("\\x1b[31mtrain") && !ContainsSubstring("\x1b"));
}

TEST_CASE("each command's help tells its own layouts") {
  CHECK_THAT(run("generate --help").text, ContainsSubstring("4+2+2 for one of 4 and two of 2"));
  for (const char* command : {"score --help", "eval --help"})
    CHECK_THAT(run(command).text,
               ContainsSubstring("2x4 on 8 ranks") && !ContainsSubstring("4+2+2"));
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

TEST_CASE("eval judges by the rewards of a run file whose preset counts") {
  const Scratch scratch;
  spill(scratch / "ppo.yaml",
        "Model: {Directory: elsewhere}\nAlgorithm: {Preset: ppo}\n"
        "Critic: {Model Directory: a critic}\n"
        "Rewards: {right: {Kind: task}, brief: {Kind: length, Target: 2, Per Token: 0.5}}\n");
  const Outcome outcome =
      run("eval --model " + scratch / "model" +
          " --task sum --count 2 --max-new-tokens 4 --rewards " + scratch / "ppo.yaml");
  INFO(outcome.text);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.text,
             ContainsSubstring("reward/right/mean") && ContainsSubstring("reward/brief/mean"));
}

TEST_CASE("scripts get parameters of a run without starting it") {
  const std::string train =
      "train --set Model/Directory=model --set 'Output/Directory=a run' --print ";
  CHECK(run(train + "Output/Directory", "SLURM_NTASKS=4").text == "a run\n");
  CHECK(run(train + "Training/Iterations").code == 0);
  const Outcome outcome = run(train + "Output/Directry");
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.text, ContainsSubstring("did you mean 'Output/Directory'"));
}
