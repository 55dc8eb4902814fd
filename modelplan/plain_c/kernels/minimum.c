/* The smaller of two numbers. */
struct minimum_VARIANT_params {
#include "pair_fields.part"
};

static void minimum_VARIANT(const struct minimum_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                            int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
                *out = *i < *j ? *i : *j;
#include "pair_ends.part"
