/* Lines over the root of the sum of their squares. */
struct float_normalised_VARIANT_params {
    int32_t lines; /* in a row */
    int32_t channels;
};

static void float_normalised_VARIANT(const struct float_normalised_VARIANT_params *p, const element_t *in, int32_t rows,
                                     int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        float sum = 0.0f;
        for (int32_t c = 0; c < p->channels; c++) {
            sum += in[c] * in[c];
        }
        sum = sqrtf(sum);
        sum = sum < 1e-6f ? 1e-6f : sum;
        for (int32_t c = 0; c < p->channels; c++) {
            out[c] = in[c] / sum;
        }
        in += p->channels;
        out += p->channels;
    }
}
