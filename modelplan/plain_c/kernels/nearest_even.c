/* uses: inlining */
#if !defined(NET_INTEGER) && FLT_EVAL_METHOD == 0
#if defined(__arm__) && defined(__ARM_FP) && defined(__ARM_FEATURE_SAT) && defined(__GNUC__)
#if (__ARM_FP & 4) != 0
#define ROUND_BY_INSTRUCTION
#define ROUND_IN_FLOATS
#endif
#elif defined(__SSE2__) || defined(__aarch64__) || defined(__riscv_flen)
#define ROUND_IN_FLOATS
#endif
#endif

/* The whole number nearest to x, halves to even numbers; of an x beyond 2^21 one beyond all codes. */
WITHIN int32_t nearest_even(float x)
{
#if defined(ROUND_BY_INSTRUCTION)
    int32_t whole;
    __asm__("vcvtr.s32.f32 %1, %1\n\t"
            "vmov %0, %1\n\t"
            "ssat %0, #24, %0"
            : "=r"(whole), "+t"(x));
    return whole;
#elif defined(ROUND_IN_FLOATS)
    const float low = x > -2097152.0f ? x : -2097152.0f;
    const float inside = low < 2097152.0f ? low : 2097152.0f;
    return (int32_t)(inside + 12582912.0f) - 12582912; /* the floats from 2^23 to 2^24 are the whole numbers */
#else
    return (int32_t)lrintf(x);
#endif
}
