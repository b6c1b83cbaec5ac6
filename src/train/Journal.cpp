// SPDX-License-Identifier: Apache-2.0
#include "train/Journal.hpp"

#include <filesystem>

#include "base/Error.hpp"
#include "base/Log.hpp"
#include "base/Text.hpp"
#include "comm/Collectives.hpp"

namespace taper {
namespace {

namespace fs = std::filesystem;

// With nothing but their tokens.
std::vector<RolloutRecord> tokens_of(const fs::path& file) {
  std::vector<RolloutRecord> known;
  if (!fs::exists(file)) return known;
  try {
    for (RolloutRecord& r : read_rollouts(file).records) {
      RolloutRecord& k = known.emplace_back();
      k.id = r.id;
      k.prompt_length = r.prompt_length;
      k.tokens = std::move(r.tokens);
    }
  } catch (const Error& error) {
    TAPER_WARN("the journal of an interrupted iteration is not used ("
               << error.what() << "): its responses are generated anew, with the same tokens");
  }
  return known;
}

}  // namespace

void Journal::write(std::int64_t iteration, std::span<const RolloutRecord> mine) const {
  if (!is_on_) return;
  on_rank_0(ranks_, [&] { fs::create_directories(directory_.journal()); });
  RolloutFileOptions file;
  file.iteration = iteration;
  const LibraryWait wait(ranks_.progress, "write the journal", ranks_.size());
  write_rollouts(directory_.journal(iteration), ranks_.world().comm(), mine, file);
}

std::vector<RolloutRecord> Journal::read(std::int64_t iteration) const {
  if (!is_on_) return {};
  auto responses = from_rank_0(ranks_, [&] { return tokens_of(directory_.journal(iteration)); });
  std::int64_t tokens = 0;
  for (const RolloutRecord& r : responses) tokens += r.response_length();
  if (!responses.empty())
    TAPER_INFO("iteration " << iteration << " was begun before: "
                            << count_text(std::ssize(responses), "response") << " ("
                            << count_text(tokens, "token") << ") are drafted from its journal");
  return responses;
}

void Journal::remove(std::int64_t iteration) const {
  if (is_on_ && ranks_.rank() == 0) directory_.remove_journal(iteration);
}

}  // namespace taper
