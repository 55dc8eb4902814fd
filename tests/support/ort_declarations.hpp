// The part of ONNX Runtime's C++ interface that printed settings use, declared as its documentation has it, so that the
// lines can be parsed where its headers are not installed. Nothing here can be linked.
#pragma once

#include <cstddef>

enum GraphOptimizationLevel { ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL = 99 };
enum OrtAllocatorType { OrtDeviceAllocator, OrtArenaAllocator };
enum OrtMemType { OrtMemTypeDefault };
struct OrtMemoryInfo;
struct OrtArenaCfg;

namespace Ort {

struct MemoryInfo {
  static MemoryInfo CreateCpu(OrtAllocatorType type, OrtMemType memory);
  operator OrtMemoryInfo*() const noexcept;
};

struct ArenaCfg {
  ArenaCfg(std::size_t most, int extend_strategy, int first_chunk, int most_dead);
  operator OrtArenaCfg*() const noexcept;
};

struct Env {
  Env();
  Env(const Env&) = delete;
  Env& CreateAndRegisterAllocator(const OrtMemoryInfo* memory, const OrtArenaCfg* arena);
};

struct SessionOptions {
  SessionOptions();
  SessionOptions& SetGraphOptimizationLevel(GraphOptimizationLevel level);
  SessionOptions& SetIntraOpNumThreads(int threads);
  SessionOptions& DisableCpuMemArena();
  SessionOptions& DisableMemPattern();
  SessionOptions& AddConfigEntry(const char* key, const char* value);
};

struct RunOptions {
  RunOptions();
  RunOptions& AddConfigEntry(const char* key, const char* value);
};

struct Session {
  Session(const Env& env, const char* path, const SessionOptions& options);
};

}  // namespace Ort
