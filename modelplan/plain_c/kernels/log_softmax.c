/* Logarithms of the shares that exponents have of their sum. */
struct log_softmax_VARIANT_params {
    int32_t lines; /* in a row */
    int32_t channels;
};

static void log_softmax_VARIANT(const struct log_softmax_VARIANT_params *p, const element_t *in, int32_t rows,
                                int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        float most = -FLT_MAX;
        float sum = 0.0f;
        for (int32_t c = 0; c < p->channels; c++) {
            most = in[c] > most ? in[c] : most;
        }
        for (int32_t c = 0; c < p->channels; c++) {
            sum += expf(in[c] - most);
        }
        sum = logf(sum);
        for (int32_t c = 0; c < p->channels; c++) {
            out[c] = in[c] - most - sum;
        }
        in += p->channels;
        out += p->channels;
    }
}
