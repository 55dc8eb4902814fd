/* Sums of codes along a block of axes behind that of rows. */
struct sum_of_codes_VARIANT_params {
    int32_t outer; /* elements of a row along the axes before those that are summed */
    int32_t reduced;
    int32_t inner; /* behind them */
};

static void sum_of_codes_VARIANT(const struct sum_of_codes_VARIANT_params *p, const element_t *in, int32_t rows,
                                 int32_t above, int32_t out_rows, out_t *out)
{
    for (int32_t o = 0; o < out_rows * p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            int32_t sum = 0;
            for (int32_t k = 0; k < p->reduced; k++) {
                sum += in[k * p->inner + i];
            }
            *out = (out_t)sum;
            out++;
        }
        in += p->reduced * p->inner;
    }
}
