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
{
    for (int32_t batch = 0; batch < p->outer * p->inner; batch++) {
        const element_t *const left = a + batch / p->inner * p->a_outer + batch % p->inner * p->a_inner;
        const element_t *const right = b + batch / p->inner * p->b_outer + batch % p->inner * p->b_inner;
        for (int32_t place = 0; place < p->rows * p->columns; place++) {
            const element_t *x = left + place / p->columns * p->a_row;
            const element_t *y = right + place % p->columns * p->b_column;
            sum_t sum = 0;
            for (int32_t k = 0; k < p->depth; k++) {
                sum += (*x - p->a_zero) * (*y - p->b_zero);
                x += p->a_deep;
                y += p->b_deep;
            }
            *out = (element_t)clamp(requantise_sum(sum, p->multiplier, p->shift) + p->out_zero, p->least, p->most);
            out++;
        }
    }
}
