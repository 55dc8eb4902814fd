/* uses: weight_of */
/* Adds the products of n floats with the weights of `channels` channels, 4 at most, to their sums, one by one. */
static void float_dot_VARIANT(const element_t *in, const weight_t *weights, int32_t pitch, int32_t n, int32_t channels,
                              sum_t *sums)
{
    if (channels == 4) {
        const weight_t *const w1 = weights + pitch;
        const weight_t *const w2 = w1 + pitch;
        const weight_t *const w3 = w2 + pitch;
        sum_t a = sums[0];
        sum_t b = sums[1];
        sum_t c = sums[2];
        sum_t d = sums[3];
        for (int32_t i = 0; i < n; i++) {
            const element_t x = in[i];
            a += x * weight_of(weights[i]);
            b += x * weight_of(w1[i]);
            c += x * weight_of(w2[i]);
            d += x * weight_of(w3[i]);
        }
        sums[0] = a;
        sums[1] = b;
        sums[2] = c;
        sums[3] = d;
    } else {
        for (int32_t k = 0; k < channels; k++) {
            const weight_t *const w = weights + k * pitch;
            sum_t a = sums[k];
            for (int32_t i = 0; i < n; i++) {
                a += in[i] * weight_of(w[i]);
            }
            sums[k] = a;
        }
    }
}
