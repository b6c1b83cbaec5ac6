// SPDX-License-Identifier: Apache-2.0
#include "engine/Request.hpp"

#include "base/Error.hpp"

namespace taper {

Request Request::part(int from, int count) const {
  TAPER_INSIST(pinned.empty() || std::ssize(pinned) == samples,
               "prompt " << first.prompt << " has " << pinned.size() << " pinned ends for "
                         << samples << " samples");
  Request some = *this;
  some.first.sample += from;
  some.samples = count;
  if (!pinned.empty()) some.pinned.assign(pinned.begin() + from, pinned.begin() + from + count);
  return some;
}

}  // namespace taper
