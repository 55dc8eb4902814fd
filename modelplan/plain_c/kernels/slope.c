/* A function of each number that has a slope. */
struct slope_VARIANT_params {
    float slope;
    int32_t elements; /* of a row */
};

static void slope_VARIANT(const struct slope_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                          int32_t out_rows, out_t *out)
#include "each.part"
