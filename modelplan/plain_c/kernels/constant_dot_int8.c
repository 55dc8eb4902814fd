/* uses: several, dot_VARIANT */
/* The same where all n elements are `value`: taps that lie beside the map. */
static void constant_dot_VARIANT(int32_t value, const int8_t *weights, int32_t pitch, int32_t n, int32_t channels,
                              int32_t *sums)
{
    for (int32_t k = 0; k < channels; k++) {
        const int8_t *w = weights + k * pitch;
        const int8_t *const end = w + n;
        int32_t a = 0;
#if defined(__ARM_FEATURE_MVE)
        for (; w < end; w += 16) {
            const mve_pred16_t rest = vctp8q((uint32_t)(end - w));
            a = vaddvaq_s8(a, vldrbq_z_s8(w, rest));
        }
#else
#if defined(IN_PAIRS)
        for (; end - w >= 4; w += 4) {
            a = dot_VARIANT_four(a, 0x00010001, 0x00010001, w);
        }
#endif
        for (; w < end; w++) {
            a += *w;
        }
#endif
        sums[k] += a * value;
    }
}
