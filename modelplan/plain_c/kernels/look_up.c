/* A function of 8-bit numbers. */
struct look_up_VARIANT_params {
    int32_t least;
    int32_t elements; /* of a row */
};

struct look_up_VARIANT_tables {
    const out_t *values; /* that of the least number comes first */
};

static void look_up_VARIANT(const struct look_up_VARIANT_params *p, const struct look_up_VARIANT_tables *q,
                            const element_t *in, int32_t rows, int32_t above, int32_t out_rows, out_t *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        out[i] = q->values[in[i] - p->least];
    }
}
