/* uses: several, clamp, high_product, wrapped_sum */
/* A sum and its bias, times multiplier * 2^(shift - 31), rounded as `requantise` does. */
WITHIN int32_t rescaled_int8_one(int32_t sum, int32_t bias, int32_t multiplier, int32_t shift)
{
    const int32_t all = wrapped_sum(sum, bias);
    const int32_t less = ~shift; /* the shift down less one, which is not below 0 most often */
    if (less < 0) {
        return high_product((int32_t)((uint32_t)all << shift), multiplier);
    }
    const int32_t high = high_product(all, multiplier);
    return (((high + (high >> 31)) >> less) + 1) >> 1;
}

#if defined(__ARM_FEATURE_MVE)
/* Four sums, bias and all, become elements. */
WITHIN void rescaled_int8_four(int32x4_t sums, const int32_t *multiplier, const int8_t *shift, int32_t zero,
                               int32x4_t least, int32x4_t most, int8_t *out)
{
    const int32x4_t none = vdupq_n_s32(0);
    const int32x4_t by = vldrbq_s32(shift);
    const int32x4_t down = vminq_s32(by, none);
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(sums, vmaxq_s32(by, none)), vldrwq_s32(multiplier));
    const int32x4_t away = vaddq_s32(high, vshrq_n_s32(vandq_s32(high, down), 31)); /* halves go away from zero */
    const int32x4_t scaled = vaddq_n_s32(vrshlq_s32(away, down), zero);
    vstrbq_s32(out, vminq_s32(vmaxq_s32(scaled, least), most));
}
#endif

#if defined(__GNUC__) /* compilers do not see that the case of 4 channels never runs where there are fewer */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif
/* Up to 4 sums of products become elements. */
WITHIN void rescaled_int8(const int32_t *sums, const int32_t *bias, const int32_t *multiplier, const int8_t *shift,
                          int32_t channels, int32_t zero, int32_t least, int32_t most, int8_t *out)
{
#if defined(__ARM_FEATURE_MVE)
    const int32x4_t none = vdupq_n_s32(0);
    const mve_pred16_t there = vctp32q((uint32_t)channels);
    const int32x4_t by = vldrbq_z_s32(shift, there);
    const int32x4_t down = vminq_s32(by, none);
    const int32x4_t sum = vaddq_s32(vldrwq_s32(sums), vldrwq_z_s32(bias, there));
    const int32x4_t raised = vshlq_s32(sum, vmaxq_s32(by, none));
    const int32x4_t high = vqrdmulhq_s32(raised, vldrwq_z_s32(multiplier, there));
    const int32x4_t away = vaddq_s32(high, vshrq_n_s32(vandq_s32(high, down), 31)); /* halves go away from zero */
    const int32x4_t scaled = vaddq_n_s32(vrshlq_s32(away, down), zero);
    vstrbq_p_s32(out, vminq_s32(vmaxq_s32(scaled, vdupq_n_s32(least)), vdupq_n_s32(most)), there);
#else
    if (channels == 4) {
        int32_t a = zero + rescaled_int8_one(sums[0], bias[0], multiplier[0], shift[0]);
        int32_t b = zero + rescaled_int8_one(sums[1], bias[1], multiplier[1], shift[1]);
        int32_t c = zero + rescaled_int8_one(sums[2], bias[2], multiplier[2], shift[2]);
        int32_t d = zero + rescaled_int8_one(sums[3], bias[3], multiplier[3], shift[3]);
#if defined(IN_PAIRS)
        const int32_t leasts = (int32_t)((uint32_t)(uint8_t)least * 0x01010101u);
        const int32_t mosts = (int32_t)((uint32_t)(uint8_t)most * 0x01010101u);
        __asm__("ssat %0, #8, %0\n\t"
                "ssat %1, #8, %1\n\t"
                "ssat %2, #8, %2\n\t"
                "ssat %3, #8, %3\n\t"
                "bfi %0, %1, #8, #8\n\t"
                "bfi %0, %2, #16, #8\n\t"
                "bfi %0, %3, #24, #8\n\t"
                "ssub8 %1, %0, %4\n\t"
                "sel %0, %0, %4\n\t"
                "ssub8 %1, %5, %0\n\t"
                "sel %0, %0, %5"
                : "+r"(a), "+r"(b), "+r"(c), "+r"(d)
                : "r"(leasts), "r"(mosts)
                : "cc");
        (void)memcpy(out, &a, sizeof a);
#else
#if defined(__ARM_FEATURE_SAT) && defined(__GNUC__)
        if (least == INT8_MIN && most == INT8_MAX) {
            __asm__("ssat %0, #8, %0\n\t"
                    "ssat %1, #8, %1\n\t"
                    "ssat %2, #8, %2\n\t"
                    "ssat %3, #8, %3"
                    : "+r"(a), "+r"(b), "+r"(c), "+r"(d)
                    :
                    : "cc");
            out[0] = (int8_t)a;
            out[1] = (int8_t)b;
            out[2] = (int8_t)c;
            out[3] = (int8_t)d;
            return;
        }
#endif
        out[0] = (int8_t)clamp(a, least, most);
        out[1] = (int8_t)clamp(b, least, most);
        out[2] = (int8_t)clamp(c, least, most);
        out[3] = (int8_t)clamp(d, least, most);
#endif
        return;
    }
    for (int32_t k = 0; k < channels; k++) {
        const int32_t scaled = zero + rescaled_int8_one(sums[k], bias[k], multiplier[k], shift[k]);
        out[k] = (int8_t)clamp(scaled, least, most);
    }
#endif
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
