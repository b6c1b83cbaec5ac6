// SPDX-License-Identifier: Apache-2.0
//
// tokenize_tool TOKENIZER_JSON < in.jsonl > out.jsonl, for the comparison with Hugging Face
// (tests/peers/compare_tokenizers.py). A line {"hex": "..."} (bytes of the text) becomes
// {"ids": [...], "special_ids": [...], "text": "...", "text_without_special": "...", "bytes": "hex
// of all token_bytes"}; a line {"ids": [...]} becomes {"text": "...", "text_without_special":
// "..."}.
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/Tokenizer.hpp"

namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string to_hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

nlohmann::json answer(const taper::Tokenizer& tokenizer, const nlohmann::json& request) {
  nlohmann::json reply;
  std::vector<int> ids;
  if (request.contains("ids")) {
    ids = request["ids"].get<std::vector<int>>();
  } else {
    const std::string text = from_hex(request["hex"].get<std::string>());
    ids = tokenizer.encode(text, taper::AddSpecial::kNo);
    reply["ids"] = ids;
    reply["special_ids"] = tokenizer.encode(text, taper::AddSpecial::kYes);
    std::string bytes;
    for (const int id : ids) bytes += tokenizer.token_bytes(id);
    reply["bytes"] = to_hex(bytes);
  }
  reply["text"] = tokenizer.decode(ids, taper::SkipSpecial::kNo);
  reply["text_without_special"] = tokenizer.decode(ids, taper::SkipSpecial::kYes);
  return reply;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: tokenize_tool TOKENIZER_JSON < in.jsonl > out.jsonl\n";
    return 2;
  }
  const auto tokenizer = taper::Tokenizer::from_file(argv[1]);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer(tokenizer, nlohmann::json::parse(line)).dump() << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << "tokenize_tool: " << error.what() << '\n';
  return 1;
}
