/* A function of two numbers. */
struct pairs_VARIANT_params {
#include "pair_fields.part"
};

static void pairs_VARIANT(const struct pairs_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                          int32_t above, int32_t out_rows, out_t *out)
#include "pair_loops.part"
                const element_t x = *i;
                const element_t y = *j;
                *out = (out_t)(EXPRESSION);
#include "pair_ends.part"
