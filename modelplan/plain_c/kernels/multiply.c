/* uses: clamp, requantise */
/* Products of quantised numbers. */
struct multiply_VARIANT_params {
#include "pair_fields.part"
#include "product_fields.part"
    int32_t least;
    int32_t most;
};

static void multiply_VARIANT(const struct multiply_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                             int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
                const int32_t product = (*i - p->a_zero) * (*j - p->b_zero);
                *out = (element_t)clamp(requantise(product, p->multiplier, p->shift) + p->out_zero, p->least, p->most);
#include "pair_ends.part"
