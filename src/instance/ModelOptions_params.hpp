// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "instance/ModelOptions.hpp"
#include "param/Schema.hpp"

namespace taper {

// The section Model: which model is trained, and as what type it is held.
void describe_model(param::Section& schema, ModelOptions& options);

// Forward and backward passes, into a section that may have more.
void describe_passes(param::Section& section, PassOptions& options);

}  // namespace taper
