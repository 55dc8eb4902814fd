struct esp_add_VARIANT_params {
#include "library_add_fields.part"
};

static void esp_add_VARIANT(const struct esp_add_VARIANT_params *p, const int8_t *a, const int8_t *b, int32_t rows,
                            int32_t above, int32_t out_rows, int8_t *out)
{
    esp_nn_add_elementwise_s8_ansi(a, b, -p->a_zero, -p->b_zero, p->a_multiplier, p->b_multiplier, p->a_shift,
                                   p->b_shift, p->left_shift, out, p->out_zero, p->out_multiplier, p->out_shift,
                                   p->least, p->most, out_rows * p->elements);
}
