/* uses: weight_of */
/* Adds the products of n floats with the weights of `channels` channels to their sums, one by one. Weights lie side by */
/* side in fours, the last ones in as many as are left: of a window of `size` elements those from `at` on. */
static void float_dot_VARIANT(const element_t *in, const weight_t *weights, int32_t size, int32_t at, int32_t n,
                              int32_t channels, sum_t *sums)
{
    const int32_t few = channels % 4;
    int32_t c = 0;
    for (; channels - c >= 4; c += 4) {
        const weight_t *w = weights + c * size + 4 * at;
        sum_t *const s = sums + c;
        sum_t a = s[0];
        sum_t b = s[1];
        sum_t e = s[2];
        sum_t d = s[3];
        for (int32_t i = 0; i < n; i++) {
            const element_t x = in[i];
            a += x * weight_of(w[0]);
            b += x * weight_of(w[1]);
            e += x * weight_of(w[2]);
            d += x * weight_of(w[3]);
            w += 4;
        }
        s[0] = a;
        s[1] = b;
        s[2] = e;
        s[3] = d;
    }
    for (; c < channels; c++) {
        const weight_t *w = weights + (channels - few) * size + few * at + c % 4;
        for (int32_t i = 0; i < n; i++) {
            sums[c] += in[i] * weight_of(*w);
            w += few;
        }
    }
}
