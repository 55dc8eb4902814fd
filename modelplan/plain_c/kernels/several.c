/* uses: inlining */
/* Some cores compute 16 products of 8 bits at once (Helium), some two of 16 bits (DSP instructions), all others one. */
#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#elif defined(__ARM_FEATURE_SIMD32) && defined(__GNUC__)
#define IN_PAIRS

/* What an instruction reads at once, which may lie anywhere. */
struct four_bytes {
    int8_t of[4];
};
#define FOUR_BYTES(at) (*(const struct four_bytes *)(const void *)(at))
#endif
