// SPDX-License-Identifier: Apache-2.0
//
// Tables of records of run files of format version 1, whose columns were all f64: layouts as codes,
// integers as numbers.
#pragma once

#include <string>

#include "results/RecordRows.hpp"

namespace taper::detail {

// A layout of its code, as to_string(Layout) writes it: the code has the degrees of the groups as
// digits (11 is "1x2", 422 is "4+2+2"), or, of more than 15 groups or degrees above 9, is minus
// (1,000,000 x the largest degree + the number of groups). The latter tells the layout only if
// the groups are alike by the ranks of the run (0: unknown); else the text is "32 groups of up to
// 2". Empty if there is none (0, NaN).
std::string layout_of_code(double code, int ranks);

// The column of a dataset ("/layout_switches/to") in the type that the schema lists; as it is if
// it has that type or is not listed.
RecordColumn upgraded(const std::string& dataset, RecordColumn column, int ranks);

}  // namespace taper::detail
