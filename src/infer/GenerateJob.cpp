// SPDX-License-Identifier: Apache-2.0
#include "infer/GenerateJob.hpp"

#include <algorithm>
#include <optional>

#include "base/Printable.hpp"
#include "base/Timer.hpp"
#include "comm/Collectives.hpp"
#include "io/AtomicFile.hpp"
#include "io/Json.hpp"
#include "io/JsonNumber.hpp"
#include "rollout/GeneratedSample.hpp"
#include "rollout/Requests.hpp"

namespace taper {
namespace {

PromptSizes sizes_of(const std::vector<std::vector<std::int32_t>>& prompts) {
  PromptSizes sizes{static_cast<int>(prompts.size())};
  for (const auto& p : prompts) sizes.longest = std::max(sizes.longest, static_cast<int>(p.size()));
  return sizes;
}

}  // namespace

GenerateJob::GenerateJob(const GenerateOptions& options, ModelFiles& files,
                         const std::vector<std::vector<std::int32_t>>& prompts, const Ranks& ranks)
    : options_(options),
      files_(files),
      prompts_(prompts),
      ranks_(ranks),
      model_(options, files, sizes_of(prompts), ranks) {}

std::vector<Request> GenerateJob::requests() const {
  std::vector<Request> list;
  for (std::size_t i = 0; i < prompts_.size(); ++i)
    list.push_back({{static_cast<std::int64_t>(i), 0},
                    options_.samples,
                    prompts_[i],
                    options_.max_new_tokens});
  return in_parts(std::move(list), ranks_.size() / options_.tp);
}

SampleSet GenerateJob::run() {
  const StopOptions stops = options_.stops(files_);
  SampleSet samples;
  model_.use([&](Generator& generator) {
    const Timer timer;
    auto completions = generator.run(requests(), options_.sampling, stops);
    samples = SampleSet(ranks_.world(), as_samples(std::move(completions)));
    seconds_ = timer.seconds();
  });
  return samples;
}

std::string response_line(const Sample& s, const ModelFiles& files) {
  const auto list = [](const auto& values, const auto& show) {
    std::string text;
    for (const auto value : values) text += (text.empty() ? "" : ", ") + show(value);
    return "[" + text + "]";
  };
  const auto id_text = [](std::int32_t id) { return std::to_string(id); };
  const std::string text =
      files.has_tokenizer()
          ? printable_json(Json(files.tokenizer().decode(s.response, SkipSpecial::kYes)).dump())
          : "null";
  return "{\"index\": " + std::to_string(s.id.prompt) +
         ", \"sample\": " + std::to_string(s.id.sample) +
         ", \"prompt_tokens\": " + list(s.prompt, id_text) +
         ", \"tokens\": " + list(s.response, id_text) +
         ", \"log_probs\": " + list(s.log_probs, log_prob_text) + ", \"text\": " + text +
         ", \"finish\": \"" + to_string(s.finish) + "\"}\n";
}

void write_responses(const std::string& path, SampleSet& samples, const ModelFiles& files,
                     const Group& world) {
  std::vector<int> rank_of;
  for (std::int64_t row = 0; row < samples.size(); ++row)
    rank_of.push_back(static_cast<int>(row * world.size() / samples.size()));
  samples.move_to({1, world.size()}, rank_of);
  std::string lines;
  for (const Sample& s : samples.here()) lines += response_line(s, files);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(world.size()));
  all_gather(world, lengths, std::vector<std::int64_t>{std::ssize(lines)});
  std::optional<AtomicFile> file;
  if (world.rank() == 0) file.emplace(path);
  for (int rank = 0; rank < world.size(); ++rank) {
    std::vector<std::int64_t> sent(lengths.size(), 0), received(lengths.size(), 0);
    if (world.rank() == rank) sent[0] = lengths[rank];
    if (world.rank() == 0) received[rank] = lengths[rank];
    std::string part(static_cast<std::size_t>(received[rank]), '\0');
    all_to_all_v(world, part, received, lines, sent);
    if (file) file->write(part);
  }
  if (file) file->commit();
}

}  // namespace taper
