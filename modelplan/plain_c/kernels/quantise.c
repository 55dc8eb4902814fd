/* uses: clamp */
/* From floats to integers. */
struct quantise_VARIANT_params {
    float scale;
    int32_t zero;
    int32_t elements; /* of a row */
};

static void quantise_VARIANT(const struct quantise_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                             int32_t out_rows, out_t *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        const float scaled = roundf(in[i] / p->scale);
        const float low = scaled > -1.0e9f ? scaled : -1.0e9f;
        const int32_t whole = (int32_t)(low < 1.0e9f ? low : 1.0e9f);
        out[i] = (out_t)clamp(whole + p->zero, OUT_MIN, OUT_MAX);
    }
}
