/* uses: inverse_root, requantise, clamp */
/* Lines of quantised numbers over the root of the sum of their squares, with 7 bits behind the point. */
struct normalised_VARIANT_params {
    int32_t in_zero;
    int32_t lines; /* in a row */
    int32_t channels;
};

static void normalised_VARIANT(const struct normalised_VARIANT_params *p, const element_t *in, int32_t rows,
                               int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        int32_t shift;
        int32_t sum = 0;
        for (int32_t c = 0; c < p->channels; c++) {
            sum += (in[c] - p->in_zero) * (in[c] - p->in_zero);
        }
        sum = inverse_root(sum, &shift);
        for (int32_t c = 0; c < p->channels; c++) {
            out[c] = (element_t)clamp(requantise(in[c] - p->in_zero, sum, shift + 7), ELEMENT_MIN, ELEMENT_MAX);
        }
        in += p->channels;
        out += p->channels;
    }
}
