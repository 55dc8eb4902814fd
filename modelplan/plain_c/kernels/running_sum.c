/* uses: clamp, requantise, wrapped_sum */
/* Sums of all quantised elements up to each one along an axis. */
struct running_sum_VARIANT_params {
#include "running_fields.part"
    int32_t in_zero;
    int32_t out_zero;
    int32_t multiplier;
    int32_t shift;
};

static void running_sum_VARIANT(const struct running_sum_VARIANT_params *p, const element_t *in, int32_t rows,
                                int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t half = (int32_t)1 << 30;
    for (int32_t line = 0; line < p->outer * p->inner; line++) {
        const int32_t start = line / p->inner * p->depth * p->inner + line % p->inner;
        int32_t sum = requantise(-p->in_zero * 1048576, half, 0);
        for (int32_t k = 0; k < p->depth; k++) {
            const int32_t at = start + (p->reverse != 0 ? p->depth - 1 - k : k) * p->inner;
            const int32_t before = sum;
            sum = wrapped_sum(sum, requantise((in[at] - p->in_zero) * 1048576, half, 0));
            const int32_t scaled = requantise(p->exclusive != 0 ? before : sum, p->multiplier, p->shift);
            out[at] = (element_t)clamp(scaled + p->out_zero, ELEMENT_MIN, ELEMENT_MAX);
        }
    }
}
