// The part of TFLM that a self-test uses, as its headers have it, so that self-tests are compiled where TFLM is not
// installed. The interpreter here has as many outputs as inputs, and Invoke copies the ones to the others.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

enum TfLiteStatus { kTfLiteOk, kTfLiteError };
enum TfLiteType {
  kTfLiteNoType,
  kTfLiteFloat32,
  kTfLiteInt32,
  kTfLiteUInt8,
  kTfLiteInt64,
  kTfLiteString,
  kTfLiteBool,
  kTfLiteInt16,
  kTfLiteComplex64,
  kTfLiteInt8,
};
union TfLitePtrUnion {
  void* data;
};
struct TfLiteTensor {
  TfLiteType type;
  TfLitePtrUnion data;
  std::size_t bytes;
};
struct TfLiteEvalTensor {
  TfLitePtrUnion data;
};
struct TfLiteContext {
  TfLiteEvalTensor* (*GetEvalTensor)(const TfLiteContext* context, int tensor);
};

__attribute__((format(printf, 1, 2))) inline void MicroPrintf(const char* format, ...) {
  va_list words;
  va_start(words, format);
  std::vprintf(format, words);
  std::puts("");
  va_end(words);
}

#ifndef COPIED
#define COPIED {kTfLiteInt8, 4},
#endif

namespace tflite {

struct Model {};
inline const Model* GetModel(const void* bytes) { return static_cast<const Model*>(bytes); }

class MicroOpResolver {};
template <unsigned int N>
class MicroMutableOpResolver : public MicroOpResolver {
 public:
  TfLiteStatus AddReshape() { return kTfLiteOk; }
};

class MicroAllocator {
 public:
  static MicroAllocator* Create(std::uint8_t* arena, std::size_t size) {
    return size < 64 ? nullptr : new (arena) MicroAllocator();
  }
};

class MicroResourceVariables {
 public:
  static MicroResourceVariables* Create(MicroAllocator* allocator, int) {
    return reinterpret_cast<MicroResourceVariables*>(allocator);
  }
};

class MicroProfilerInterface {
 public:
  virtual ~MicroProfilerInterface() {}
  virtual std::uint32_t BeginEvent(const char* tag) = 0;
  virtual void EndEvent(std::uint32_t event) = 0;
};

class MicroInterpreter {
 public:
  MicroInterpreter(const Model*, const MicroOpResolver&, MicroAllocator* allocator,
                   MicroResourceVariables* = nullptr, MicroProfilerInterface* = nullptr)
      : allocated_(allocator != nullptr), context_{nullptr} {
    for (std::size_t i = 0; i < kCount; ++i) {
      in_[i] = {kCopied[i].type, {from_[i]}, kCopied[i].bytes};
      out_[i] = {kCopied[i].type, {to_[i]}, kCopied[i].bytes};
    }
  }
  TfLiteStatus AllocateTensors() { return allocated_ ? kTfLiteOk : kTfLiteError; }
  TfLiteStatus Invoke() {
    std::memcpy(to_, from_, sizeof(to_));
    return kTfLiteOk;
  }
  TfLiteTensor* input(std::size_t i) { return &in_[i]; }
  TfLiteTensor* output(std::size_t i) { return &out_[i]; }
  std::size_t inputs_size() const { return kCount; }
  std::size_t outputs_size() const { return kCount; }

 protected:
  const TfLiteContext& context() const { return context_; }

 private:
  struct Copied {
    TfLiteType type;
    std::size_t bytes;
  };
  static constexpr Copied kCopied[] = {COPIED};
  static constexpr std::size_t kCount = sizeof(kCopied) / sizeof(kCopied[0]);
  bool allocated_;
  TfLiteContext context_;
  TfLiteTensor in_[kCount], out_[kCount];
  alignas(16) std::uint8_t from_[kCount][4096], to_[kCount][4096];
};

}  // namespace tflite
