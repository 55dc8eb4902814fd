// A self-test as a program of the measuring kit, whose libraries leave the log to the program.
#define MODELPLAN_SELF_TEST_MAIN
#include PLAN_HEADER

#include <cstdarg>
#include <cstdio>

extern "C" void DebugLog(const char* format, va_list args) { std::vprintf(format, args); }

extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return std::vsnprintf(buffer, size, format, args);
}
