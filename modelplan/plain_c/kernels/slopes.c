/* uses: clamp, requantise */
/* One slope above zero, another below. */
struct slopes_VARIANT_params {
    int32_t in_zero;
    int32_t out_zero;
    int32_t multiplier;
    int32_t shift;
    int32_t below_multiplier;
    int32_t below_shift;
    int32_t below_sign;
    int32_t least;
    int32_t most;
    int32_t elements; /* of a row */
};

static void slopes_VARIANT(const struct slopes_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                           int32_t out_rows, element_t *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        const int32_t x = in[i] - p->in_zero;
        const int32_t y = x >= 0 ? requantise(x, p->multiplier, p->shift)
                                 : requantise(x, p->below_multiplier, p->below_shift) * p->below_sign;
        out[i] = (element_t)clamp(y + p->out_zero, p->least, p->most);
    }
}
