/* The largest, or the least, elements over a block of axes. */
struct extreme_VARIANT_params {
    int32_t outer; /* elements along the axes before those that are reduced */
    int32_t reduced;
    int32_t inner; /* behind them */
    int32_t least; /* 1: the least */
};

static void extreme_VARIANT(const struct extreme_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                            int32_t out_rows, element_t *out)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            element_t best = p->least != 0 ? ELEMENT_MAX : ELEMENT_MIN;
            for (int32_t k = 0; k < p->reduced; k++) {
                const element_t here = in[k * p->inner + i];
                best = (p->least != 0 ? here < best : here > best) ? here : best;
            }
            *out = best;
            out++;
        }
        in += p->reduced * p->inner;
    }
}
