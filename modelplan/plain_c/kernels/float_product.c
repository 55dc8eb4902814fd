/* uses: least_of, float_dot_VARIANT, float_bounded_VARIANT */
/* Products of lines with a matrix. */
struct float_product_VARIANT_params {
    int32_t lines; /* in a row */
    int32_t in_channels;
    int32_t out_channels;
    float least;
    float most;
};

struct float_product_VARIANT_tables {
    const weight_t *weights; /* of four channels: [in_channels, 4] */
    const sum_t *bias;
};

static void float_product_VARIANT(const struct float_product_VARIANT_params *p,
                                  const struct float_product_VARIANT_tables *q, const element_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        for (int32_t c = 0; c < p->out_channels; c += 16) {
            sum_t sums[16] = {0.0f};
            const int32_t channels = least_of(p->out_channels - c, 16);
            const weight_t *const weights = q->weights + c * p->in_channels;
            float_dot_VARIANT(in, weights, p->in_channels, 0, p->in_channels, channels, sums);
            float_bounded_VARIANT(sums, q->bias + c, channels, p->least, p->most, out + c);
        }
        in += p->in_channels;
        out += p->out_channels;
    }
}
