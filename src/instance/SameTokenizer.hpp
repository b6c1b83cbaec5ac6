// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "instance/ModelFiles.hpp"
#include "session/Ranks.hpp"

namespace taper {

// For a model that gets the token ids of the policy's responses, such as a critic or a reward
// model. Throws Error (kBadInput), the same on all ranks, if these ids mean something else to it:
// if it has a tokenizer.json that gives other ids than the policy's (which must then have one), or
// if it has fewer embeddings than the policy has ids. Two files that differ only in what does not
// matter for ids (padding, truncation, post processing, the order of keys) are one tokenizer.
// `option` names the model's directory in the error, `advice` says what to do. Collective over the
// world: rank 0 looks.
void require_same_tokenizer(const ModelFiles& policy, const ModelFiles& model, const Ranks& ranks,
                            const std::string& option, const std::string& advice);

}  // namespace taper
