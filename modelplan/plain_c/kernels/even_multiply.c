/* uses: clamp, nearest_even */
/* Products of quantised numbers in float32, halves to even numbers. */
struct even_multiply_VARIANT_params {
#include "pair_fields.part"
    int32_t a_zero;
    int32_t b_zero;
    int32_t code; /* the file's own codes are larger by so much */
    float factor;
    float zero; /* among the file's own codes */
    int32_t least;
    int32_t most;
};

static void even_multiply_VARIANT(const struct even_multiply_VARIANT_params *p, const element_t *a, const element_t *b,
                                  int32_t rows, int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
                /* volatile: the product is rounded by itself, whatever the compiler fuses */
                volatile float product = (float)((*i - p->a_zero) * (*j - p->b_zero)) * p->factor;
                *out = (element_t)clamp(nearest_even(product + p->zero) - p->code, p->least, p->most);
#include "pair_ends.part"
