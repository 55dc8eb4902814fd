// A self-test as a program of the measuring kit, whose libraries leave the log to the program. It takes the model from a
// file, as firmware may have another one than the test was written for.
#include <cstdarg>
#include <cstdio>

// What the self-test sees as constant bytes of the firmware.
alignas(16) unsigned char model_bytes_of_firmware[1 << 20] __asm__("firmware_model");
#define MODELPLAN_SELF_TEST_MODEL firmware_model

#include PLAN_HEADER

extern "C" void DebugLog(const char* format, va_list args) { std::vprintf(format, args); }

extern "C" int DebugVsnprintf(char* buffer, size_t size, const char* format, va_list args) {
  return std::vsnprintf(buffer, size, format, args);
}

int main(int, char** words) {
  FILE* file = std::fopen(words[1], "rb");
  if (file == nullptr || std::fread(model_bytes_of_firmware, 1, sizeof(model_bytes_of_firmware), file) == 0) return 2;
  return modelplan_self_test();
}
