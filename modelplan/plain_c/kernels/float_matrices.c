/* Products of matrices. */
struct float_matrices_VARIANT_params {
#include "matrix_fields.part"
};

static void float_matrices_VARIANT(const struct float_matrices_VARIANT_params *p, const element_t *a, const element_t *b,
                                   int32_t rows, int32_t above, int32_t out_rows, element_t *out)
#include "matrix_loops.part"
                sum += *x * *y;
                x += p->a_deep;
                y += p->b_deep;
            }
            *out = sum;
#include "matrix_ends.part"
