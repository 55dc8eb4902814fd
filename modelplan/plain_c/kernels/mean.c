/* uses: clamp, requantise */
/* Means, or sums, over a block of axes. */
struct mean_VARIANT_params {
    int32_t outer; /* elements along the axes before those that are reduced */
    int32_t reduced;
    int32_t inner; /* behind them */
    int32_t in_zero;
    int32_t out_zero;
    int32_t multiplier; /* over the number of elements */
    int32_t shift;
};

static void mean_VARIANT(const struct mean_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                         int32_t out_rows, out_t *out)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            int32_t sum = 0;
            for (int32_t k = 0; k < p->reduced; k++) {
                sum += in[k * p->inner + i] - p->in_zero;
            }
            *out = (out_t)clamp(requantise(sum, p->multiplier, p->shift) + p->out_zero, OUT_MIN, OUT_MAX);
            out++;
        }
        in += p->reduced * p->inner;
    }
}
