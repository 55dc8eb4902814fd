/* A function of 8-bit numbers: its value of -128 comes first. */
struct look_up_VARIANT_params {
    const out_t *values;
    int32_t elements; /* of a row */
};

static void look_up_VARIANT(const struct look_up_VARIANT_params *p, const int8_t *in, int32_t rows, int32_t above,
                            int32_t out_rows, out_t *out)
{
    (void)rows;
    (void)above;
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        out[i] = p->values[(int32_t)in[i] + 128];
    }
}
