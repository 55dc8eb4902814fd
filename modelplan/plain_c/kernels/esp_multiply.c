struct esp_multiply_VARIANT_params {
    int32_t elements; /* of a row */
#include "product_fields.part"
    int32_t least;
    int32_t most;
};

static void esp_multiply_VARIANT(const struct esp_multiply_VARIANT_params *p, const int8_t *a, const int8_t *b,
                                 int32_t rows, int32_t above, int32_t out_rows, int8_t *out)
{
    esp_nn_mul_elementwise_s8_ansi(a, b, -p->a_zero, -p->b_zero, out, p->out_zero, p->multiplier, p->shift, p->least,
                                   p->most, out_rows * p->elements);
}
