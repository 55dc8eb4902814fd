/* uses: least_of, four_floats */
/* Products of matrices. */
struct float_matrices_VARIANT_params {
#include "matrix_fields.part"
};

/* Up to 4 elements of a line of the result, from a line and from so many columns. */
static void float_matrices_VARIANT_few(const struct float_matrices_VARIANT_params *p, const element_t *x,
                                       const element_t *y, int32_t columns, element_t *out)
{
    const int32_t apart = p->b_column;
    if (columns == 4) {
        sum_t a = 0.0f;
        sum_t b = 0.0f;
        sum_t c = 0.0f;
        sum_t d = 0.0f;
        for (int32_t k = p->depth; k > 0; k--) {
            a += *x * y[0];
            b += *x * y[apart];
            c += *x * y[2 * apart];
            d += *x * y[3 * apart];
            x += p->a_deep;
            y += p->b_deep;
        }
        out[0] = a;
        out[1] = b;
        out[2] = c;
        out[3] = d;
        return;
    }
    for (int32_t i = 0; i < columns; i++) {
        const element_t *left = x;
        const element_t *right = y + i * apart;
        sum_t sum = 0.0f;
        for (int32_t k = p->depth; k > 0; k--) {
            sum += *left * *right;
            left += p->a_deep;
            right += p->b_deep;
        }
        out[i] = sum;
    }
}

#if defined(FOUR_FLOATS)
/* The same of 8 columns that lie side by side. */
static void float_matrices_VARIANT_eight(const struct float_matrices_VARIANT_params *p, const element_t *x,
                                         const element_t *y, element_t *out)
{
    four_floats a = {0.0f, 0.0f, 0.0f, 0.0f};
    four_floats b = a;
    for (int32_t k = 0; k < p->depth; k++) {
        a += *x * FOUR_CONSTANTS(y);
        b += *x * FOUR_CONSTANTS(y + 4);
        x += p->a_deep;
        y += p->b_deep;
    }
    FOUR_FLOATS(out) = a;
    FOUR_FLOATS(out + 4) = b;
}
#endif

static void float_matrices_VARIANT(const struct float_matrices_VARIANT_params *p, const element_t *a, const element_t *b,
                                   int32_t rows, int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t batch = 0; batch < p->outer * p->inner; batch++) {
        const element_t *x = a + batch / p->inner * p->a_outer + batch % p->inner * p->a_inner;
        const element_t *const right = b + batch / p->inner * p->b_outer + batch % p->inner * p->b_inner;
        for (int32_t row = 0; row < p->rows; row++) {
            int32_t c = 0;
#if defined(FOUR_FLOATS)
            for (; p->b_column == 1 && p->columns - c >= 8; c += 8) {
                float_matrices_VARIANT_eight(p, x, right + c, out + c);
            }
#endif
            for (; c < p->columns; c += 4) {
                const element_t *const y = right + c * p->b_column;
                float_matrices_VARIANT_few(p, x, y, least_of(p->columns - c, 4), out + c);
            }
            x += p->a_row;
            out += p->columns;
        }
    }
}
