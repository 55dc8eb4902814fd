/* uses: clamp, requantise */
/* Sums, or differences, of quantised numbers. */
struct add_VARIANT_params {
#include "pair_fields.part"
#include "add_fields.part"
};

static void add_VARIANT(const struct add_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                        int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
#include "add_each.part"
#include "pair_ends.part"
