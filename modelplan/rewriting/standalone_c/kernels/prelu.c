/* uses: clamp, requantise */
/* Quantised numbers, negative ones times a slope. */
struct prelu_VARIANT_params {
    int32_t width; /* columns of a row */
    int32_t channels;
    int32_t a_row; /* elements from one row of the operand to the next, 0 where they are the same */
    int32_t a_column;
    int32_t a_channel;
    int32_t b_row;
    int32_t b_column;
    int32_t b_channel;
    int32_t a_zero;
    int32_t b_zero;
    int32_t out_zero;
    int32_t multiplier;
    int32_t shift;
    int32_t identity_multiplier;
    int32_t identity_shift;
};

static void prelu_VARIANT(const struct prelu_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                             int32_t above, int32_t out_rows, element_t *out)
{
    (void)rows;
    (void)above;
    for (int32_t y = 0; y < out_rows; y++) {
        for (int32_t x = 0; x < p->width; x++) {
            const element_t *i = a + y * p->a_row + x * p->a_column;
            const element_t *j = b + y * p->b_row + x * p->b_column;
            for (int32_t c = 0; c < p->channels; c++) {
                const int32_t x = *i - p->a_zero;
                const int32_t scaled = x >= 0 ? requantise(x, p->identity_multiplier, p->identity_shift)
                                              : requantise(x * (*j - p->b_zero), p->multiplier, p->shift);
                *out = (element_t)clamp(scaled + p->out_zero, ELEMENT_MIN, ELEMENT_MAX);
                i += p->a_channel;
                j += p->b_channel;
                out++;
            }
        }
    }
}
