// SPDX-License-Identifier: Apache-2.0
//
// Reads the part of YAML that a run file needs: nested sections by indentation, plain, quoted and
// block (| and >) texts, lists of scalars in both spellings, {a: 1} sections, comments, one
// document. Teuchos' own reader is not used: it drops keys at a wrong indentation without a word,
// refuses non-ASCII text, several top-level sections and empty lists, and keeps no line numbers.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace Teuchos {
class ParameterList;
}

namespace taper::param::detail {

using LineMap = std::map<std::string, int>;  // "Section/Name" -> line, from 1

// Adds the content of text to list. file is for messages. Throws Error(kBadInput).
void read_yaml(std::string_view text, const std::string& file, Teuchos::ParameterList& list,
               LineMap& lines);

}  // namespace taper::param::detail
