// SPDX-License-Identifier: Apache-2.0
//
// How alike the lengths of responses to one prompt are. The last ones of a generation often belong
// to one or two prompts: drawn independently, they would make its end look later than it comes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace taper {

// One-factor model: a response's place in the distribution of lengths is that of its prompt with a
// probability `share`, else its own. Two responses of a prompt then correlate by share squared,
// which is estimated from past generations: the intraclass correlation of the ranks of lengths
// (R. A. Fisher, Statistical Methods for Research Workers, section 38), fading with a half-life.
// Integers only.
class PromptLikeness {
 public:
  explicit PromptLikeness(int half_life);

  // Ends a generation: response lengths, `samples` of each prompt one after the other.
  void learn(std::span<const int> lengths, int samples);
  // 1/65536; 0 if nothing is known.
  int share() const;

  // 8-byte integers (ByteWriter). load() throws Error if they are damaged.
  std::string save() const;
  void load(std::string_view bytes);

 private:
  int half_life_;
  std::int64_t correlation_ = 0;  // summed over prompts, 1/65536
  std::int64_t weight_ = 0;       // prompts, fading, 1/65536
};

}  // namespace taper
