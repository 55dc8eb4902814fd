/* uses: high_product, shifted_down, reciprocal, clamp */
struct softmax_VARIANT_params {
    int32_t differences;
    int32_t lines; /* in a row */
    int32_t channels;
};

struct softmax_VARIANT_tables {
    const int32_t *exponentials; /* of 0, -1, -2 ..., as many as count, with 31 bits behind the point */
};

static void softmax_VARIANT(const struct softmax_VARIANT_params *p, const struct softmax_VARIANT_tables *q,
                            const element_t *in, int32_t rows, int32_t above, int32_t out_rows, out_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        int32_t most = in[0];
        int32_t sum = 0;
        int32_t bits;
        for (int32_t c = 1; c < p->channels; c++) {
            most = in[c] > most ? in[c] : most;
        }
        for (int32_t c = 0; c < p->channels; c++) {
            const int32_t difference = most - in[c];
            if (difference < p->differences) {
                sum += shifted_down(q->exponentials[difference], 12);
            }
        }
        const int32_t scale = reciprocal(sum, 12, &bits);
        for (int32_t c = 0; c < p->channels; c++) {
            const int32_t difference = most - in[c];
            int32_t share = 0;
            if (difference < p->differences) {
                share = shifted_down(high_product(scale, q->exponentials[difference]), bits + 31 - OUT_BITS);
            }
            out[c] = (out_t)clamp(share + OUT_MIN, OUT_MIN, OUT_MAX);
        }
        in += p->channels;
        out += p->channels;
    }
}
