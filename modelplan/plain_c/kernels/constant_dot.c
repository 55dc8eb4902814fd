/* The same where all n elements are `value`: taps that lie beside the map. */
static void constant_dot_VARIANT(int32_t value, const weight_t *weights, int32_t pitch, int32_t n, int32_t channels,
                                 sum_t *sums)
{
    for (int32_t k = 0; k < channels; k++) {
        const weight_t *const w = weights + k * pitch;
        sum_t a = 0;
        for (int32_t i = 0; i < n; i++) {
            a += w[i];
        }
        sums[k] += a * value;
    }
}
