// SPDX-License-Identifier: Apache-2.0
#include "tune/SftSource.hpp"

#include <algorithm>
#include <span>

#include "base/Error.hpp"
#include "base/Fingerprint.hpp"
#include "base/Text.hpp"

namespace taper {
namespace {

int example_limit(const SftOptions& o, const ModelFiles& files, int max_rows) {
  const int limit = std::min(max_rows, files.config.max_positions);
  return o.data.max_length > 0 ? std::min(limit, o.data.max_length) : limit;
}

}  // namespace

SftSource::SftSource(const SftOptions& options, const ModelFiles& files, int max_rows)
    : options_(options),
      files_(&files),
      limit_(example_limit(options, files, max_rows)),
      max_rows_(max_rows),
      mix_(TaskMix::from_name(options.task)),
      encoder_(files, options.data.chat_template, options.data.answers),
      examples_(read_examples("Data/Files", options.data.files, options.data, files, limit_)),
      validation_(read_examples("Data/Validation Files", options.data.validation_files,
                                options.data, files, limit_)),
      order_(std::ssize(examples_), options.seed,
             options.data.shuffle ? ExampleOrder::Shuffle::kYes : ExampleOrder::Shuffle::kNo,
             options.epochs),
      fingerprint_(make_fingerprint()) {}

std::uint64_t SftSource::make_fingerprint() const {
  Fingerprint hash(examples_.empty()       ? options_.task
                   : options_.data.shuffle ? "shuffled"
                                           : "in order");
  if (examples_.empty()) return hash.add(options_.direct_fraction).add(options_.slip_rate).value();
  for (const TokenExample& e : examples_)
    hash.add(std::int64_t{e.length()})
        .add(std::int64_t{std::ssize(e.answers)})
        .add_all(std::span<const std::int32_t>(e.tokens))
        .add_all(std::span(e.answers));
  return hash.value();
}

std::vector<TokenExample> SftSource::next_batch(std::uint64_t& next) const {
  if (examples_.empty()) return next_task_batch(next);
  std::vector<TokenExample> batch;
  for (int tokens = 0; tokens < options_.batch_tokens && next < order_.end(); ++next) {
    batch.push_back(examples_[order_.index_at(next)]);
    tokens += batch.back().length();
  }
  return batch;
}

std::vector<TokenExample> SftSource::next_task_batch(std::uint64_t& next) const {
  constexpr int kMostLeftOut = 1000;  // in a row; the tasks' lengths vary by far less

  std::vector<TokenExample> batch;
  int left_out = 0, shortest = 0;
  for (int tokens = 0; tokens < options_.batch_tokens; ++next) {
    const SftExample text =
        make_sft_example(mix_, options_.seed, next, {options_.direct_fraction, options_.slip_rate});
    TokenExample example = encoder_.encode_pair(text.prompt, text.response);
    if (example.length() > limit_) {
      shortest = left_out++ == 0 ? example.length() : std::min(shortest, example.length());
      TAPER_VALIDATE(left_out < kMostLeftOut, "Training/Max Tokens is "
                                                  << max_rows_ << " and the context "
                                                  << files_->config.max_positions
                                                  << " (the shortest of many examples has "
                                                  << shortest << " tokens); raise it");
      continue;
    }
    left_out = 0;
    tokens += example.length();
    batch.push_back(std::move(example));
  }
  return batch;
}

std::int64_t SftSource::steps_left(std::uint64_t next, std::int64_t done) const {
  if (options_.epochs == 0) return std::max<std::int64_t>(0, options_.steps - done);
  std::int64_t steps = 0;
  for (; next < order_.end(); ++steps)
    for (int tokens = 0; tokens < options_.batch_tokens && next < order_.end(); ++next)
      tokens += examples_[order_.index_at(next)].length();
  return steps;
}

double SftSource::epochs(std::uint64_t next) const {
  return examples_.empty() ? 0.0 : order_.passes(next);
}

}  // namespace taper
