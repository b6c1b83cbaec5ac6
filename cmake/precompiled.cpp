// SPDX-License-Identifier: Apache-2.0
//
// The owner of the precompiled header needs a source (TaperTargets.cmake).
