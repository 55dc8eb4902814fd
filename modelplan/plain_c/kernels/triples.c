/* One of two numbers, by a third. */
struct triples_VARIANT_params {
#include "pair_fields.part"
    int32_t c_row;
    int32_t c_column;
    int32_t c_channel;
};

static void triples_VARIANT(const struct triples_VARIANT_params *p, const uint8_t *a, const element_t *b, const element_t *c,
                            int32_t rows, int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < out_rows * p->width; line++) {
        const int32_t row = line / p->width;
        const int32_t column = line % p->width;
        for (int32_t channel = 0; channel < p->channels; channel++) {
            const uint8_t x = a[row * p->a_row + column * p->a_column + channel * p->a_channel];
            const element_t y = b[row * p->b_row + column * p->b_column + channel * p->b_channel];
            const element_t z = c[row * p->c_row + column * p->c_column + channel * p->c_channel];
            *out = EXPRESSION;
            out++;
        }
    }
}
