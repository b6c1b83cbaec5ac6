// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/Error.hpp"

namespace taper::test {

// The text of the bad-input error that a call throws; "" if it throws none.
template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    const bool bad_input = error.code() == ExitCode::kBadInput;
    return bad_input ? error.what() : std::string("not bad input: ") + error.what();
  }
  return "";
}

}  // namespace taper::test
