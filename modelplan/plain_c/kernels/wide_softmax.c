/* uses: requantise, clamp */
struct wide_softmax_VARIANT_params {
    int32_t multiplier;
    int32_t shift;
    int32_t lines; /* in a row */
    int32_t channels;
};

struct wide_softmax_VARIANT_tables {
    const int16_t *exponentials; /* exp(x) for 513 x from -10 to 0 */
    const int16_t *reciprocals;  /* 1 / (1 + x) for 513 x from 0 to 1 */
};

/* The value of a table at a number of 16 bits, between two of its entries. */
static int32_t wide_softmax_VARIANT_value(const int16_t *values, int32_t at)
{
    const int32_t from = (at + 32768) / 128;
    const int32_t slope = values[from + 1] - values[from];
    return values[from] + ((slope * ((at + 32768) % 128) + 64) >> 7);
}

static void wide_softmax_VARIANT(const struct wide_softmax_VARIANT_params *p,
                                 const struct wide_softmax_VARIANT_tables *q, const element_t *in, int32_t rows,
                                 int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        int32_t most = in[0];
        int32_t sum = 0;
        int32_t bits = 0;
        for (int32_t c = 1; c < p->channels; c++) {
            most = in[c] > most ? in[c] : most;
        }
        for (int32_t c = 0; c < p->channels; c++) {
            const int32_t at = clamp(requantise(in[c] - most, p->multiplier, p->shift) + 32767, -32768, 32767);
            out[c] = (element_t)wide_softmax_VARIANT_value(q->exponentials, at);
            sum += out[c];
        }
        while (((int64_t)sum << bits) < ((int64_t)1 << 30)) {
            bits++;
        }
        const int32_t whole = (int32_t)((((int64_t)sum << bits) + (1 << 13)) >> 14);
        const int64_t scale = wide_softmax_VARIANT_value(q->reciprocals, clamp(whole - 98304, -32768, 32767));
        for (int32_t c = 0; c < p->channels; c++) {
            const int64_t share = (out[c] * scale + ((int64_t)1 << (29 - bits))) >> (30 - bits);
            out[c] = (element_t)clamp((int32_t)share, 0, 32767);
        }
        in += p->channels;
        out += p->channels;
    }
}
