/* uses: requantise */
/* A function of two quantised numbers. */
struct scaled_pairs_VARIANT_params {
#include "pair_fields.part"
#include "scaled_pair_fields.part"
};

static void scaled_pairs_VARIANT(const struct scaled_pairs_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                                 int32_t above, int32_t out_rows, out_t *out)
#include "pair_loops.part"
#include "scaled_pair.part"
#include "pair_ends.part"
