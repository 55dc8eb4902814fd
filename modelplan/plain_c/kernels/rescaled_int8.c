/* uses: several, clamp, scaled_VARIANT */
#if defined(__ARM_FEATURE_MVE)
/* Four sums, bias and all, become elements. */
WITHIN void rescaled_VARIANT_four(int32x4_t sums, const int32_t *multiplier, const int8_t *shift, int32_t zero,
                                  int32x4_t least, int32x4_t most, int8_t *out)
{
    const int32x4_t scaled = scaled_VARIANT_four(sums, vldrwq_s32(multiplier), vldrbq_s32(shift), zero);
    vstrbq_s32(out, vminq_s32(vmaxq_s32(scaled, least), most));
}
#endif

#if defined(__GNUC__) /* compilers do not see that the case of 4 channels never runs where there are fewer */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif
/* Up to 4 sums of products become elements. */
WITHIN void rescaled_VARIANT(const int32_t *sums, const int32_t *bias, const int32_t *multiplier, const int8_t *shift,
                             int32_t channels, int32_t zero, int32_t least, int32_t most, int8_t *out)
{
#if defined(__ARM_FEATURE_MVE)
    const mve_pred16_t there = vctp32q((uint32_t)channels);
    const int32x4_t sum = vaddq_s32(vldrwq_s32(sums), vldrwq_z_s32(bias, there));
    const int32x4_t scaled =
        scaled_VARIANT_four(sum, vldrwq_z_s32(multiplier, there), vldrbq_z_s32(shift, there), zero);
    vstrbq_p_s32(out, vminq_s32(vmaxq_s32(scaled, vdupq_n_s32(least)), vdupq_n_s32(most)), there);
#else
    if (channels == 4) {
        int32_t a = scaled_VARIANT(sums[0], bias[0], multiplier[0], shift[0], zero);
        int32_t b = scaled_VARIANT(sums[1], bias[1], multiplier[1], shift[1], zero);
        int32_t c = scaled_VARIANT(sums[2], bias[2], multiplier[2], shift[2], zero);
        int32_t d = scaled_VARIANT(sums[3], bias[3], multiplier[3], shift[3], zero);
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
        const int32_t scaled = scaled_VARIANT(sums[k], bias[k], multiplier[k], shift[k], zero);
        out[k] = (int8_t)clamp(scaled, least, most);
    }
#endif
}
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
