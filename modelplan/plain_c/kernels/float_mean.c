/* Means, or sums, over a block of axes. */
struct float_mean_VARIANT_params {
#include "float_mean_fields.part"
};

static void float_mean_VARIANT(const struct float_mean_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                         int32_t out_rows, element_t *out)
{
    for (int32_t o = 0; o < out_rows * p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            float sum = 0.0f;
            for (int32_t k = 0; k < p->reduced; k++) {
                sum += in[k * p->inner + i];
            }
            *out = sum / p->count;
            out++;
        }
        in += p->reduced * p->inner;
    }
}
