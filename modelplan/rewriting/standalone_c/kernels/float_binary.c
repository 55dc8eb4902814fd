/* Sums, differences, products, quotients, extremes of two numbers, or negative numbers times a slope. */
struct float_binary_VARIANT_params {
    int32_t width; /* columns of a row */
    int32_t channels;
    int32_t a_row; /* elements from one row of the operand to the next, 0 where they are the same */
    int32_t a_column;
    int32_t a_channel;
    int32_t b_row;
    int32_t b_column;
    int32_t b_channel;
    int32_t operation; /* 0 a + b, 1 a - b, 2 a * b, 3 a / b, 4 the larger, 5 the smaller, 6 a or a * b */
    float least;
    float most;
};

static float float_binary_VARIANT_of(int32_t operation, float a, float b)
{
    switch (operation) {
    case 0:
        return a + b;
    case 1:
        return a - b;
    case 2:
        return a * b;
    case 3:
        return a / b;
    case 4:
        return a > b ? a : b;
    case 5:
        return a < b ? a : b;
    default:
        return a >= 0.0f ? a : a * b;
    }
}

static void float_binary_VARIANT(const struct float_binary_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                             int32_t above, int32_t out_rows, element_t *out)
{
    (void)rows;
    (void)above;
    for (int32_t y = 0; y < out_rows; y++) {
        for (int32_t x = 0; x < p->width; x++) {
            const element_t *i = a + y * p->a_row + x * p->a_column;
            const element_t *j = b + y * p->b_row + x * p->b_column;
            for (int32_t c = 0; c < p->channels; c++) {
                const float sum = float_binary_VARIANT_of(p->operation, *i, *j);
                const float low = sum < p->least ? p->least : sum;
                *out = low > p->most ? p->most : low;
                i += p->a_channel;
                j += p->b_channel;
                out++;
            }
        }
    }
}
