/* Means, or sums, over a block of axes of codes, as floats. */
struct mean_of_codes_VARIANT_params {
    int32_t outer; /* elements along the axes before those that are reduced */
    int32_t reduced;
    int32_t inner; /* behind them */
    int32_t zero;
    float scale;
    float count; /* by which the sum is divided */
};

static void mean_of_codes_VARIANT(const struct mean_of_codes_VARIANT_params *p, const element_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, out_t *out)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            float sum = 0.0f;
            for (int32_t k = 0; k < p->reduced; k++) {
                volatile float number = (float)(in[k * p->inner + i] - p->zero) * p->scale;
                sum += number;
            }
            *out = sum / p->count;
            out++;
        }
        in += p->reduced * p->inner;
    }
}
