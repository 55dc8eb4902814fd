/* uses: clamp, requantise */
/* Sums, or differences, of quantised numbers. */
struct add_VARIANT_params {
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
    int32_t left_shift;
    int32_t a_multiplier;
    int32_t a_shift;
    int32_t b_multiplier;
    int32_t b_shift;
    int32_t b_sign; /* -1: b is subtracted */
    int32_t out_multiplier;
    int32_t out_shift;
    int32_t least;
    int32_t most;
};

static void add_VARIANT(const struct add_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                        int32_t above, int32_t out_rows, element_t *out)
{
    (void)rows;
    (void)above;
    for (int32_t y = 0; y < out_rows; y++) {
        for (int32_t x = 0; x < p->width; x++) {
            const element_t *i = a + y * p->a_row + x * p->a_column;
            const element_t *j = b + y * p->b_row + x * p->b_column;
            for (int32_t c = 0; c < p->channels; c++) {
                const int32_t unit = (int32_t)1 << p->left_shift;
                const int32_t first = requantise((*i - p->a_zero) * unit, p->a_multiplier, p->a_shift);
                const int32_t second = requantise((*j - p->b_zero) * unit, p->b_multiplier, p->b_shift);
                const int32_t sum = requantise(first + p->b_sign * second, p->out_multiplier, p->out_shift);
                *out = (element_t)clamp(sum + p->out_zero, p->least, p->most);
                i += p->a_channel;
                j += p->b_channel;
                out++;
            }
        }
    }
}
