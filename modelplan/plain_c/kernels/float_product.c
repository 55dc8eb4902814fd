/* uses: weight_of */
/* Products of lines with a matrix. */
struct float_product_VARIANT_params {
    const weight_t *weights; /* [out_channels, in_channels] */
    const sum_t *bias;
    int32_t lines; /* in a row */
    int32_t in_channels;
    int32_t out_channels;
    float least;
    float most;
};

static void float_product_VARIANT(const struct float_product_VARIANT_params *p, const element_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, element_t *out)
{
    (void)rows;
    (void)above;
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        for (int32_t c = 0; c < p->out_channels; c++) {
            float sum = 0.0f;
            for (int32_t i = 0; i < p->in_channels; i++) {
                sum += in[i] * weight_of(p->weights[c * p->in_channels + i]);
            }
            sum += p->bias[c];
            sum = sum < p->least ? p->least : sum;
            *out = sum > p->most ? p->most : sum;
            out++;
        }
        in += p->in_channels;
    }
}
