/* uses: several */
/* The sums of four channels that lie side by side. */
#if defined(__ARM_FEATURE_MVE)
struct four_sums_VARIANT {
    int32x4_t of;
};
#else
struct four_sums_VARIANT {
    int32_t of[4];
};
#endif

/* Adds the products of four elements, each with its weight. */
WITHIN void add_four_VARIANT(struct four_sums_VARIANT *sums, const int8_t *in, const int8_t *weights)
{
#if defined(__ARM_FEATURE_MVE)
    sums->of = vaddq_s32(sums->of, vmulq_s32(vldrbq_s32(in), vldrbq_s32(weights)));
#elif defined(IN_PAIRS)
    int32_t x;
    int32_t w;
    int32_t even;
    int32_t weight;
    __asm__("ldr %4, %8\n\t"
            "ldr %5, %9\n\t"
            "sxtb16 %6, %4\n\t"
            "sxtb16 %7, %5\n\t"
            "smlabb %0, %6, %7, %0\n\t"
            "smlatt %2, %6, %7, %2\n\t"
            "sxtb16 %4, %4, ror #8\n\t"
            "sxtb16 %5, %5, ror #8\n\t"
            "smlabb %1, %4, %5, %1\n\t"
            "smlatt %3, %4, %5, %3"
            : "+r"(sums->of[0]), "+r"(sums->of[1]), "+r"(sums->of[2]), "+r"(sums->of[3]), "=&r"(x), "=&r"(w),
              "=&r"(even), "=&r"(weight)
            : "m"(FOUR_BYTES(in)), "m"(FOUR_BYTES(weights)));
#else
    sums->of[0] += in[0] * weights[0];
    sums->of[1] += in[1] * weights[1];
    sums->of[2] += in[2] * weights[2];
    sums->of[3] += in[3] * weights[3];
#endif
}

/* The same where all four are of one element. */
WITHIN void add_alike_VARIANT(struct four_sums_VARIANT *sums, const int8_t *in, const int8_t *weights)
{
#if defined(__ARM_FEATURE_MVE)
    sums->of = vmlaq_n_s32(sums->of, vldrbq_s32(weights), *in);
#else
    const int32_t x = *in;
    sums->of[0] += x * weights[0];
    sums->of[1] += x * weights[1];
    sums->of[2] += x * weights[2];
    sums->of[3] += x * weights[3];
#endif
}

WITHIN void put_sums_VARIANT(const struct four_sums_VARIANT *sums, int32_t to[4])
{
#if defined(__ARM_FEATURE_MVE)
    vstrwq_s32(to, sums->of);
#else
    (void)memcpy(to, sums->of, sizeof sums->of);
#endif
}
