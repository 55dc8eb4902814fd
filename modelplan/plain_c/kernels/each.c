/* A function of each number. */
struct each_VARIANT_params {
    int32_t elements; /* of a row */
};

static void each_VARIANT(const struct each_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                         int32_t out_rows, out_t *out)
#include "each.part"
