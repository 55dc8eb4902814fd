/* Sums of all elements up to each one along an axis. */
struct float_running_sum_VARIANT_params {
#include "running_fields.part"
};

static void float_running_sum_VARIANT(const struct float_running_sum_VARIANT_params *p, const element_t *in, int32_t rows,
                                      int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < p->outer * p->inner; line++) {
        const int32_t start = line / p->inner * p->depth * p->inner + line % p->inner;
        float sum = 0.0f;
        for (int32_t k = 0; k < p->depth; k++) {
            const int32_t at = start + (p->reverse != 0 ? p->depth - 1 - k : k) * p->inner;
            const float before = sum;
            sum += in[at];
            out[at] = p->exclusive != 0 ? before : sum;
        }
    }
}
