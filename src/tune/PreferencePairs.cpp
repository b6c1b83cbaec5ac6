// SPDX-License-Identifier: Apache-2.0
#include "tune/PreferencePairs.hpp"

#include <algorithm>
#include <utility>

#include "base/Error.hpp"
#include "base/Fingerprint.hpp"
#include "base/Log.hpp"
#include "base/Path.hpp"
#include "base/Text.hpp"
#include "data/PreferenceData.hpp"
#include "data/SftExamples.hpp"
#include "io/InputPath.hpp"

namespace taper {
namespace {

constexpr const char* kTooLong =
    "raise Training/Max Tokens (both sides of a pair are in one micro-batch) or Data/Max Length "
    "within the model's context";

// What is too long of a pair, in words; empty if it fits.
std::string length_problem(const TokenPair& pair, const PairLimits& limits) {
  const auto of = [](const char* what, std::size_t tokens, int limit) {
    return std::string(what) + " has " + std::to_string(tokens) + " tokens (" +
           std::to_string(limit) + " at most)";
  };
  if (std::ssize(pair.chosen) > limits.side)
    return of("the prompt with the chosen response", pair.chosen.size(), limits.side);
  if (std::ssize(pair.rejected) > limits.side)
    return of("the prompt with the rejected response", pair.rejected.size(), limits.side);
  if (pair.length() > limits.pair)
    return of("the pair", static_cast<std::size_t>(pair.length()), limits.pair);
  return "";
}

TokenPair encode(SftEncoder& encoder, const PreferenceItem& item, const std::string& where) {
  TokenPair pair{encoder.encode(item.chosen, where).tokens,
                 encoder.encode(item.rejected, where).tokens, item.margin};
  TAPER_VALIDATE(
      pair.chosen != pair.rejected,
      where << ": chosen and rejected are the same tokens (neither is preferred); remove the line");
  return pair;
}

// Appends the pairs of one file.
void read_file(const std::string& file, const PreferenceDataOptions& data, SftEncoder& encoder,
               const PairLimits& limits, std::vector<TokenPair>& pairs) {
  int dropped = 0, all = 0;
  for (const PreferenceItem& item : read_preference_data(file)) {
    const std::string where = line_text(file, item.line);
    TokenPair pair = encode(encoder, item, where);
    ++all;
    const std::string problem = length_problem(pair, limits);
    TAPER_VALIDATE(
        problem.empty() || data.over_long != OverLong::kStop,
        where << ": " << problem << "; " << kTooLong << ", or set Data/Over Long to drop");
    if (problem.empty())
      pairs.push_back(std::move(pair));
    else
      ++dropped;
  }
  if (dropped > 0)
    TAPER_INFO(path_text(file) << ": " << dropped << " of " << all
                               << " pairs are left out (a side is longer than " << limits.side
                               << " tokens, or both together longer than " << limits.pair << ")");
  TAPER_VALIDATE(dropped < all, path_text(file) << ": all pairs are too long (a side has at most "
                                                << limits.side << " tokens, both together "
                                                << limits.pair << "); " << kTooLong);
}

PairLimits limits_of(const RewardModelOptions& o, const ModelFiles& files, int max_rows) {
  const int context = files.config.max_positions;
  return {o.data.max_length > 0 ? std::min(context, o.data.max_length) : context, max_rows};
}

void add(Fingerprint& hash, std::span<const std::int32_t> ids) {
  hash.add(static_cast<std::uint64_t>(ids.size())).add_all(ids);
}

}  // namespace

std::vector<TokenPair> read_pairs(const std::string& option, const std::vector<std::string>& files,
                                  const PreferenceDataOptions& data, const ModelFiles& model,
                                  const PairLimits& limits) {
  SftEncoder encoder(model, data.chat_template, SftAnswers::kLast);
  std::vector<TokenPair> pairs;
  for (const std::string& file : files) {
    require_input_file(option, file);
    read_file(file, data, encoder, limits, pairs);
  }
  return pairs;
}

PreferenceSource::PreferenceSource(const RewardModelOptions& options, const ModelFiles& files,
                                   int max_rows)
    : batch_pairs_(options.batch_pairs),
      steps_(options.steps),
      pairs_(read_pairs("Data/Files", options.data.files, options.data, files,
                        limits_of(options, files, max_rows))),
      validation_(read_pairs("Data/Validation Files", options.data.validation_files, options.data,
                             files, limits_of(options, files, max_rows))),
      order_(std::ssize(pairs_), options.seed,
             options.data.shuffle ? ExampleOrder::Shuffle::kYes : ExampleOrder::Shuffle::kNo,
             options.steps > 0 ? 0 : options.epochs),
      fingerprint_(make_fingerprint(options.data.shuffle)) {}

std::uint64_t PreferenceSource::make_fingerprint(bool shuffle) const {
  Fingerprint hash(shuffle ? "shuffled" : "in order");
  for (const TokenPair& pair : pairs_) {
    add(hash, pair.chosen);
    add(hash, pair.rejected);
    hash.add(pair.margin);
  }
  return hash.value();
}

std::vector<TokenPair> PreferenceSource::next_batch(std::uint64_t& next) const {
  std::vector<TokenPair> batch;
  for (; std::ssize(batch) < batch_pairs_ && next < order_.end(); ++next)
    batch.push_back(pairs_[order_.index_at(next)]);
  return batch;
}

std::int64_t PreferenceSource::steps_left(std::uint64_t next, std::int64_t done) const {
  if (steps_ > 0) return std::max<std::int64_t>(0, steps_ - done);
  const std::uint64_t left = order_.end() - std::min(next, order_.end());
  const auto batch = static_cast<std::uint64_t>(batch_pairs_);
  return static_cast<std::int64_t>((left + batch - 1) / batch);
}

}  // namespace taper
