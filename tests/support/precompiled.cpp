// SPDX-License-Identifier: Apache-2.0
//
// The owner of the precompiled header of the tests needs a program.
int main() {}
