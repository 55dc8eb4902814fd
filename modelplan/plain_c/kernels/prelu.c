/* uses: clamp, requantise */
/* Quantised numbers, negative ones times a slope. */
struct prelu_VARIANT_params {
#include "pair_fields.part"
#include "product_fields.part"
    int32_t identity_multiplier;
    int32_t identity_shift;
};

static void prelu_VARIANT(const struct prelu_VARIANT_params *p, const element_t *a, const other_t *b, int32_t rows,
                             int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
                const int32_t x = *i - p->a_zero;
                const int32_t scaled = x >= 0 ? requantise(x, p->identity_multiplier, p->identity_shift)
                                              : requantise(x * (*j - p->b_zero), p->multiplier, p->shift);
                *out = (element_t)clamp(scaled + p->out_zero, ELEMENT_MIN, ELEMENT_MAX);
#include "pair_ends.part"
