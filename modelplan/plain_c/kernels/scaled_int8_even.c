/* uses: several, wrapped_sum, nearest_even, rescale_even */
#if !defined(ROUND_IN_FLOATS)
APART int32_t scaled_VARIANT_whole(int32_t sum, int32_t multiplier, int32_t shift)
{
    return rescale_even(sum, multiplier, shift);
}
#endif

/* A sum and its bias, times multiplier * 2^shift as float32 computes it, halves to even numbers, and the zero point: */
/* in floats where a unit for them is there. The multiplier has 24 bits, or is 0 with a shift of -128. */
WITHIN int32_t scaled_VARIANT(int32_t sum, int32_t bias, int32_t multiplier, int32_t shift, int32_t zero)
{
#if defined(ROUND_IN_FLOATS)
    const uint32_t bits = (uint32_t)multiplier + ((uint32_t)(shift + 149) << 23);
    float scale;
    (void)memcpy(&scale, &bits, sizeof scale);
    return zero + nearest_even((float)wrapped_sum(sum, bias) * scale);
#else
    return zero + scaled_VARIANT_whole(wrapped_sum(sum, bias), multiplier, shift);
#endif
}

#if defined(__ARM_FEATURE_MVE)
/* The same of four sums, with their biases. */
WITHIN int32x4_t scaled_VARIANT_four(int32x4_t sums, int32x4_t multiplier, int32x4_t shift, int32_t zero)
{
#if (__ARM_FEATURE_MVE & 2) != 0 && defined(ROUND_IN_FLOATS)
    const int32x4_t exponent = vshlq_n_s32(vaddq_n_s32(shift, 149), 23);
    const float32x4_t scale = vreinterpretq_f32_s32(vaddq_s32(multiplier, exponent));
    return vqaddq_n_s32(vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums), scale)), zero);
#else
    int32_t of[4];
    int32_t by[4];
    int32_t to[4];
    vstrwq_s32(of, sums);
    vstrwq_s32(by, multiplier);
    vstrwq_s32(to, shift);
    for (int32_t k = 0; k < 4; k++) {
        of[k] = scaled_VARIANT(of[k], 0, by[k], to[k], zero);
    }
    return vldrwq_s32(of);
#endif
}
#endif
