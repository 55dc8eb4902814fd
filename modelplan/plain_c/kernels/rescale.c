/* uses: clamp, requantise */
/* From one scale to another. */
struct rescale_VARIANT_params {
    int32_t in_zero;
    int32_t out_zero;
    int32_t multiplier;
    int32_t shift;
    int32_t elements; /* of a row */
};

static void rescale_VARIANT(const struct rescale_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                            int32_t out_rows, out_t *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        const int32_t scaled = requantise(in[i] - p->in_zero, p->multiplier, p->shift);
        out[i] = (out_t)clamp(scaled + p->out_zero, OUT_MIN, OUT_MAX);
    }
}
