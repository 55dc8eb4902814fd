/* uses: clamp, requantise_sum */
/* Products of quantised matrices. */
struct matrices_VARIANT_params {
#include "matrix_fields.part"
    int32_t a_zero;
    int32_t b_zero;
    int32_t out_zero;
    int32_t multiplier;
    int32_t shift;
    int32_t least;
    int32_t most;
};

static void matrices_VARIANT(const struct matrices_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                             int32_t above, int32_t out_rows, element_t *out)
#include "matrix_loops.part"
                sum += (*x - p->a_zero) * (*y - p->b_zero);
                x += p->a_deep;
                y += p->b_deep;
            }
            *out = (element_t)clamp(requantise_sum(sum, p->multiplier, p->shift) + p->out_zero, p->least, p->most);
#include "matrix_ends.part"
