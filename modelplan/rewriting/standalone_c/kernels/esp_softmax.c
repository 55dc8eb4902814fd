struct esp_softmax_VARIANT_params {
    int32_t lines; /* in a row */
    int32_t channels;
    int32_t multiplier;
    int32_t shift;
    int32_t least; /* difference from the largest number of a line that counts */
};

static void esp_softmax_VARIANT(const struct esp_softmax_VARIANT_params *p, const int8_t *in, int32_t rows,
                                int32_t above, int32_t out_rows, int8_t *out)
{
    (void)rows;
    (void)above;
    esp_nn_softmax_s8_ansi(in, out_rows * p->lines, p->channels, p->multiplier, p->shift, p->least, out);
}
