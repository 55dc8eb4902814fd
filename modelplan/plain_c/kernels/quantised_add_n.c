/* uses: clamp, requantise */
/* Sums of several maps of one scale. */
struct quantised_add_n_VARIANT_params {
    int32_t elements; /* of a row */
    int32_t in_zero;
    int32_t out_zero;
    int32_t multiplier;
    int32_t shift;
};

static void quantised_add_n_VARIANT(const struct quantised_add_n_VARIANT_params *p, OPERANDS, int32_t rows,
                                    int32_t above, int32_t out_rows, element_t *out)
{
    const element_t *const terms[COUNT] = {TERMS};
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        int32_t sum = -p->in_zero;
        for (int32_t k = 0; k < COUNT; k++) {
            sum += terms[k][i] - p->in_zero;
        }
        sum = requantise((int32_t)((uint32_t)sum << 19), p->multiplier, p->shift);
        out[i] = (element_t)clamp(sum + p->out_zero, ELEMENT_MIN, ELEMENT_MAX);
    }
}
