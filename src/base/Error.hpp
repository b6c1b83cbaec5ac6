// SPDX-License-Identifier: Apache-2.0
//
// Errors in six words: EXPECT and ENSURE check the programmer (debug and audit builds only), and
// so does INSIST, in all builds, if going on would cost wrong results or a hang. VALIDATE checks
// the world outside (always), and FAIL reports what is known to have failed. Each module that calls
// a C library has a CALL wrapper (MPI, HDF5) on top of these.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace taper {

// Process exit codes; scripts depend on the values.
enum class ExitCode : int {
  kDone = 0,
  kFailure = 1,
  kBadInput = 2,       // bad input or configuration: the same call will fail again
  kStoppedEarly = 75,  // stopped at a safe point (signal, time limit): run again to go on
};

// The one exception type. what() is "problem (why) suggestion".
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Throws Error with the first problem, if there are any, after `where`: "planner: Grid is 0 ...".
void require_no_problems(const std::vector<std::string>& problems, const std::string& where = "",
                         ExitCode code = ExitCode::kBadInput);

// What a person is told of an exception: an Error's own text, and for others what to do.
std::string describe(const std::exception& error);

namespace detail {
[[noreturn]] void throw_broken_contract(const char* kind, const char* condition, const char* file,
                                        int line);
}

}  // namespace taper

#ifdef TAPER_ASSERTIONS
#define TAPER_CHECK_CONTRACT_(kind, condition)                                      \
  do {                                                                              \
    if (!(condition))                                                               \
      ::taper::detail::throw_broken_contract(kind, #condition, __FILE__, __LINE__); \
  } while (false)
#else
#define TAPER_CHECK_CONTRACT_(kind, condition) \
  do {                                         \
    (void)sizeof(!(condition));                \
  } while (false)
#endif

// Precondition of a function, checked if TAPER_ASSERTIONS is defined.
#define TAPER_EXPECT(condition) TAPER_CHECK_CONTRACT_("EXPECT", condition)
// Postcondition or invariant, checked if TAPER_ASSERTIONS is defined.
#define TAPER_ENSURE(condition) TAPER_CHECK_CONTRACT_("ENSURE", condition)

// Throws Error(code, streamed message), always compiled in.
#define TAPER_FAIL(code, message)                     \
  do {                                                \
    std::ostringstream taper_message_;                \
    taper_message_ << message;                        \
    throw ::taper::Error(code, taper_message_.str()); \
  } while (false)

// What only a bug can break, checked in all builds: ends with kFailure, never with kBadInput, which
// tells scripts that the input is to blame.
#define TAPER_INSIST(condition, message)                                                         \
  do {                                                                                           \
    if (!(condition))                                                                            \
      TAPER_FAIL(::taper::ExitCode::kFailure, message << " (a bug in Taper; please report it)"); \
  } while (false)

// Input from outside: TAPER_VALIDATE(t >= 0, "Rollout/Temperature is " << t << " (must not be
// negative); 0 is greedy").
#define TAPER_VALIDATE(condition, message)                               \
  do {                                                                   \
    if (!(condition)) TAPER_FAIL(::taper::ExitCode::kBadInput, message); \
  } while (false)
