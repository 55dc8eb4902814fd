struct float_softmax_VARIANT_params {
    float beta;
    int32_t lines; /* in a row */
    int32_t channels;
};

static void float_softmax_VARIANT(const struct float_softmax_VARIANT_params *p, const float *in, int32_t rows,
                                  int32_t above, int32_t out_rows, float *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        float most = in[0];
        float sum = 0.0f;
        for (int32_t c = 1; c < p->channels; c++) {
            most = in[c] > most ? in[c] : most;
        }
        for (int32_t c = 0; c < p->channels; c++) {
            out[c] = expf((in[c] - most) * p->beta);
            sum += out[c];
        }
        for (int32_t c = 0; c < p->channels; c++) {
            out[c] = out[c] / sum;
        }
        in += p->channels;
        out += p->channels;
    }
}
