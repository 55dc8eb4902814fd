// How a search ended, and what it found out: one vocabulary for all engines.
#pragma once

#include <cstdint>

namespace modelplan {

// The answer of an exact search to "is there one?".
enum class Verdict { kFeasible, kInfeasible, kUnknown };

// Why a call came back. The first four are answers, the others say that the question stays open.
enum class Ended {
  kComplete,    // the method ran through
  kOptimal,     // what it found meets its bound
  kFits,        // it meets the height asked for
  kInfeasible,  // a proof that nothing does
  kBudget,      // out of steps
  kDeadline,    // out of seconds
  kCancelled,   // the caller asked to stop
  kMemory       // the table of states is full
};

constexpr const char* kEndedNames[] = {"complete", "optimal",  "fits",      "infeasible",
                                       "budget",   "deadline", "cancelled", "memory"};
constexpr const char* kVerdictNames[] = {"feasible", "infeasible", "unknown"};

constexpr const char* name_of(Ended ended) { return kEndedNames[static_cast<int>(ended)]; }
constexpr const char* name_of(Verdict verdict) { return kVerdictNames[static_cast<int>(verdict)]; }

}  // namespace modelplan
