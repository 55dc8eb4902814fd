/* uses: clamp, requantise */
/* Magnitudes of quantised numbers whose zero point is 0. */
struct magnitude_VARIANT_params {
    int32_t multiplier;
    int32_t shift;
    int32_t elements; /* of a row */
};

static void magnitude_VARIANT(const struct magnitude_VARIANT_params *p, const element_t *in, int32_t rows,
                              int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        const int32_t size = in[i] < 0 ? -in[i] : in[i];
        out[i] = (element_t)clamp(requantise(size, p->multiplier, p->shift), ELEMENT_MIN, ELEMENT_MAX);
    }
}
