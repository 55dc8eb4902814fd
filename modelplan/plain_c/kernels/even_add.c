/* uses: clamp, fused, nearest_even */
/* Sums of quantised numbers, in float32: a * a_factor + (b * b_factor + offset), halves to even numbers. */
struct even_add_VARIANT_params {
#include "pair_fields.part"
    int32_t code; /* the file's own codes are larger by so much */
    float offset;
    float a_factor;
    float b_factor;
    int32_t least;
    int32_t most;
};

static void even_add_VARIANT(const struct even_add_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                             int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
                const float part = fused((float)(*j + p->code), p->b_factor, p->offset);
                const float sum = fused((float)(*i + p->code), p->a_factor, part);
                *out = (element_t)clamp(nearest_even(sum) - p->code, p->least, p->most);
#include "pair_ends.part"
