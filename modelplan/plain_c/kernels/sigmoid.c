/* uses: interpolated */
/* 1 / (1 + exp(-x)), or tanh, of 16-bit numbers, between the values of a table. */
struct sigmoid_VARIANT_params {
    int32_t tangent; /* 1: tanh */
    int32_t multiplier;
    int32_t shift;
    int32_t elements; /* of a row */
};

struct sigmoid_VARIANT_tables {
    const uint16_t *values;
};

static void sigmoid_VARIANT(const struct sigmoid_VARIANT_params *p, const struct sigmoid_VARIANT_tables *q,
                            const int16_t *in, int32_t rows, int32_t above, int32_t out_rows, int16_t *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        out[i] = interpolated(q->values, p->tangent, in[i], p->multiplier, p->shift);
    }
}
