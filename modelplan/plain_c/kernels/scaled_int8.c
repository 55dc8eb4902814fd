/* uses: several, high_product, wrapped_sum */
/* A sum and its bias, times multiplier * 2^(shift - 31), rounded as `requantise` does, and the zero point. */
WITHIN int32_t scaled_VARIANT(int32_t sum, int32_t bias, int32_t multiplier, int32_t shift, int32_t zero)
{
    const int32_t all = wrapped_sum(sum, bias);
    const int32_t less = ~shift; /* the shift down less one, which is not below 0 most often */
    if (less < 0) {
        return zero + high_product((int32_t)((uint32_t)all << shift), multiplier);
    }
    const int32_t high = high_product(all, multiplier);
    return zero + ((((high + (high >> 31)) >> less) + 1) >> 1);
}

#if defined(__ARM_FEATURE_MVE)
/* The same of four sums, with their biases. */
WITHIN int32x4_t scaled_VARIANT_four(int32x4_t sums, int32x4_t multiplier, int32x4_t shift, int32_t zero)
{
    const int32x4_t none = vdupq_n_s32(0);
    const int32x4_t down = vminq_s32(shift, none);
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(sums, vmaxq_s32(shift, none)), multiplier);
    const int32x4_t away = vaddq_s32(high, vshrq_n_s32(vandq_s32(high, down), 31)); /* halves go away from zero */
    return vaddq_n_s32(vrshlq_s32(away, down), zero);
}
#endif
