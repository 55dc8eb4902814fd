/* uses: clamp, requantise */
/* Squares of the differences of quantised numbers. */
struct squared_difference_VARIANT_params {
#include "pair_fields.part"
#include "scaled_pair_fields.part"
    int32_t out_zero;
    int32_t multiplier;
    int32_t shift;
};

static void squared_difference_VARIANT(const struct squared_difference_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                                       int32_t above, int32_t out_rows, out_t *out)
#include "pair_loops.part"
#include "scaled_pair.part"
#include "pair_ends.part"
