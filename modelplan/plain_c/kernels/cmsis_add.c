struct cmsis_add_VARIANT_params {
#include "library_add_fields.part"
};

static void cmsis_add_VARIANT(const struct cmsis_add_VARIANT_params *p, const int8_t *a, const int8_t *b, int32_t rows,
                              int32_t above, int32_t out_rows, int8_t *out)
{
    (void)arm_elementwise_add_s8(a, b, -p->a_zero, p->a_multiplier, p->a_shift, -p->b_zero, p->b_multiplier,
                                 p->b_shift, p->left_shift, out, p->out_zero, p->out_multiplier, p->out_shift,
                                 p->least, p->most, out_rows * p->elements);
}
