/* Sums, differences, products, quotients of two numbers, or negative numbers times a slope. */
struct float_binary_VARIANT_params {
#include "pair_fields.part"
    int32_t operation; /* 0 a + b, 1 a - b, 2 a * b, 3 a / b, 4 a or a * b */
    float least;
    float most;
};

static float float_binary_VARIANT_of(int32_t operation, float a, float b)
{
    switch (operation) {
    case 0:
        return a + b;
    case 1:
        return a - b;
    case 2:
        return a * b;
    case 3:
        return a / b;
    default:
        return a >= 0.0f ? a : a * b;
    }
}

static void float_binary_VARIANT(const struct float_binary_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                             int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
                const float sum = float_binary_VARIANT_of(p->operation, *i, *j);
                const float low = sum < p->least ? p->least : sum;
                *out = low > p->most ? p->most : low;
#include "pair_ends.part"
