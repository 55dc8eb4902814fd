// The solver's door for C and C++: columns in, offsets out, each placement checked before it is handed out.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <new>
#include <string>

#include "../load_bound.hpp"
#include "../referee.hpp"
#include "../rigid/pack.hpp"
#include "../solver/solve.hpp"
#include "modelplan.h"

struct modelplan_stop {
  std::atomic<bool> requested{false};
};

namespace modelplan {
namespace {

constexpr std::int64_t kSteps = 500'000, kStepsPerBuffer = 40, kTries = 15'000;  // as modelplan.place has them

static_assert(static_cast<int>(Ended::kMemory) == MODELPLAN_MEMORY, "the two lists of endings are one");

// The buffers with every column there.
class Columns {
 public:
  explicit Columns(const modelplan_buffers& b)
      : alignment_(b.alignment ? 0 : b.count, 1),
        pin_(b.pin ? 0 : b.count, -1),
        problem_{.size = {b.size, b.count},
                 .start = {b.start, b.count},
                 .end = {b.end, b.count},
                 .alignment = {b.alignment ? b.alignment : alignment_.data(), b.count},
                 .pin = {b.pin ? b.pin : pin_.data(), b.count},
                 .member = {b.member, b.members},
                 .group = {b.group, b.members},
                 .delta = {b.delta, b.members}} {}
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;

  const Problem& problem() const { return problem_; }

 private:
  Array<std::int64_t> alignment_, pin_;
  Problem problem_;
};

void say(char* message, std::size_t room, const std::string& text) {
  if (message != nullptr && room > 0) std::snprintf(message, room, "%s", text.c_str());
}

std::string buffer(std::size_t b) { return "buffer " + std::to_string(b); }

std::string refused(std::size_t b, const char* column, std::int64_t value, const char* expected) {
  return buffer(b) + ": " + column + " " + std::to_string(value) + ", expected " + expected;
}

// What makes no sense, or nothing.
std::string refusal(const modelplan_buffers& b, const Problem& problem) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  if (b.count > 0 && (b.size == nullptr || b.start == nullptr || b.end == nullptr)) return "a column is missing";
  if (b.members > 0 && (b.member == nullptr || b.group == nullptr || b.delta == nullptr)) return "a column is missing";
  if (b.count > std::size_t{1} << 30) return "more than 2^30 buffers";
  std::int64_t total = 0;
  for (std::size_t k = 0; k < b.count; ++k) {
    const std::int64_t size = problem.size[k], alignment = problem.alignment[k], pin = problem.pin[k];
    if (size < 0 || size > kMost - total) return refused(k, "size", size, "at least 0, and all sizes at most 2^60");
    total += size;
    if (problem.start[k] < 0) return refused(k, "start", problem.start[k], "at least 0");
    if (problem.end[k] <= problem.start[k]) return refused(k, "end", problem.end[k], "a step behind its start");
    if (alignment < 1 || alignment > kMost) return refused(k, "alignment", alignment, "at least 1, at most 2^60");
    if (pin < -1 || pin > kMost || (pin > 0 && pin % alignment != 0))
      return refused(k, "pin", pin, "-1 or a multiple of the alignment, at most 2^60");
  }
  Array<bool> grouped(b.count, false);
  for (std::size_t k = 0; k < b.members; ++k) {
    const std::int64_t member = problem.member[k];
    if (member < 0 || as_size(member) >= b.count) return "a group names a buffer that does not exist";
    if (grouped[as_size(member)]) return buffer(as_size(member)) + " is in two groups";
    grouped[as_size(member)] = true;
    if (problem.group[k] < 0 || problem.delta[k] < 0 || problem.delta[k] > kMost)
      return refused(as_size(member), "distance", problem.delta[k], "0 to 2^60 in a group of at least 0");
  }
  return {};
}

// What a placement breaks, or nothing. It shares no code with the solver.
std::string broken(const Problem& problem, const std::int64_t* offsets) {
  for (std::size_t k = 0; k < problem.count(); ++k) {
    if (offsets[k] < 0 || offsets[k] % problem.alignment[k] != 0) return buffer(k) + ": its offset is not aligned";
    if (problem.pin[k] >= 0 && offsets[k] != problem.pin[k]) return buffer(k) + " does not stand at its pin";
  }
  std::map<std::int64_t, std::int64_t> bases;
  for (std::size_t k = 0; k < problem.member.size(); ++k) {
    const std::int64_t base = offsets[as_size(problem.member[k])] - problem.delta[k];
    if (bases.try_emplace(problem.group[k], base).first->second != base)
      return buffer(as_size(problem.member[k])) + " does not keep its distance";
  }
  const auto [a, b] = referee::find_clash(problem.size, problem.start, problem.end, {offsets, problem.count()}, {});
  if (a < 0) return {};
  return buffer(as_size(a)) + " and " + std::to_string(b) + " share bytes while both are alive";
}

struct Answer {
  Array<std::int64_t> offsets;
  std::int64_t bound, steps;
  Ended ended;
};

Answer packed(const Problem& problem, const modelplan_options& asked) {
  rigid::Options options;
  options.tries = asked.steps > 0 ? asked.steps : kTries;
  options.enough = std::max<std::int64_t>(asked.capacity, 0);
  options.seed = asked.seed;
  options.seconds = asked.seconds;
  if (asked.stop != nullptr) options.cancelled = [&asked](std::int64_t) { return asked.stop->requested.load(); };
  rigid::Packed found = rigid::pack(problem, options);
  return {std::move(found.offsets), found.bound, found.tries, found.ended};
}

Answer solved(const Problem& problem, const modelplan_options& asked) {
  solver::Options options;
  options.capacity = asked.capacity;
  options.minimize = asked.capacity < 0;
  options.seconds = asked.seconds;
  options.seed = asked.seed;
  options.threads = std::max(asked.threads, 1);
  options.steps = asked.steps;
  if (asked.steps == 0 && asked.seconds <= 0)
    options.steps = kSteps + kStepsPerBuffer * static_cast<std::int64_t>(problem.count());
  if (asked.stop != nullptr) options.cancel = &asked.stop->requested;
  if (asked.progress != nullptr)
    options.progress = [&asked](const solver::Progress& p) { asked.progress(asked.user, p.height, p.bound, p.steps); };
  solver::Result found = solver::solve(problem, options);
  return {std::move(found.offsets), found.bound, found.steps, found.ended};
}

modelplan_status place(const modelplan_buffers& buffers, const modelplan_options& asked, std::int64_t* offsets,
                       modelplan_result& result, char* message, std::size_t room) {
  const Columns columns(buffers);
  const Problem& problem = columns.problem();
  if (const std::string why = refusal(buffers, problem); !why.empty()) {
    say(message, room, why);
    return MODELPLAN_INVALID;
  }
  const Answer answer = buffers.members > 0 ? packed(problem, asked) : solved(problem, asked);
  if (answer.offsets.size() < problem.count()) {
    say(message, room, "pins, alignments or distances exclude every placement");
    return MODELPLAN_NO_PLACEMENT;
  }
  if (const std::string why = broken(problem, answer.offsets.data()); !why.empty()) {
    say(message, room, why);
    return MODELPLAN_REJECTED;
  }
  result = {0, std::max(answer.bound, load_bound(problem).bytes), answer.steps,
            static_cast<modelplan_ended>(answer.ended)};
  for (std::size_t k = 0; k < problem.count(); ++k) {
    offsets[k] = answer.offsets[k];
    if (problem.size[k] > 0) result.height = std::max(result.height, answer.offsets[k] + problem.size[k]);
  }
  if (asked.capacity >= 0 && result.height <= asked.capacity)
    result.ended = MODELPLAN_FITS;
  else if (asked.capacity >= 0 && result.bound > asked.capacity)
    result.ended = MODELPLAN_INFEASIBLE;
  else if (result.height <= result.bound)
    result.ended = MODELPLAN_OPTIMAL;
  return MODELPLAN_OK;
}

}  // namespace
}  // namespace modelplan

extern "C" {

modelplan_options modelplan_default_options(void) { return {-1, 0, 0.0, 0, 1, nullptr, nullptr, nullptr}; }

modelplan_status modelplan_place(const modelplan_buffers* buffers, const modelplan_options* options,
                                 std::int64_t* offsets, modelplan_result* result, char* message, std::size_t room) {
  const modelplan_options asked = options ? *options : modelplan_default_options();
  modelplan_result found{};
  modelplan_status status = MODELPLAN_INVALID;
  try {
    if (buffers == nullptr || (offsets == nullptr && buffers->count > 0))
      modelplan::say(message, room, "no buffers, or no room for their offsets");
    else
      status = modelplan::place(*buffers, asked, offsets, found, message, room);
  } catch (const std::bad_alloc&) {
    modelplan::say(message, room, "not enough memory to search");
  } catch (const std::exception& problem) {
    modelplan::say(message, room, problem.what());
  }
  if (result != nullptr) *result = found;
  return status;
}

modelplan_status modelplan_check(const modelplan_buffers* buffers, const std::int64_t* offsets, char* message,
                                 std::size_t room) {
  try {
    if (buffers == nullptr || (offsets == nullptr && buffers->count > 0)) {
      modelplan::say(message, room, "no buffers, or no offsets");
      return MODELPLAN_INVALID;
    }
    const modelplan::Columns columns(*buffers);
    if (const std::string why = modelplan::refusal(*buffers, columns.problem()); !why.empty()) {
      modelplan::say(message, room, why);
      return MODELPLAN_INVALID;
    }
    const std::string why = modelplan::broken(columns.problem(), offsets);
    modelplan::say(message, room, why);
    return why.empty() ? MODELPLAN_OK : MODELPLAN_REJECTED;
  } catch (const std::exception& problem) {
    modelplan::say(message, room, problem.what());
    return MODELPLAN_INVALID;
  }
}

modelplan_stop* modelplan_new_stop(void) { return new (std::nothrow) modelplan_stop; }
void modelplan_request_stop(modelplan_stop* stop) {
  if (stop != nullptr) stop->requested = true;
}
void modelplan_free_stop(modelplan_stop* stop) { delete stop; }

const char* modelplan_ended_name(modelplan_ended ended) {
  return ended >= MODELPLAN_COMPLETE && ended <= MODELPLAN_MEMORY
             ? modelplan::name_of(static_cast<modelplan::Ended>(ended))
             : "unknown";
}

}  // extern "C"
