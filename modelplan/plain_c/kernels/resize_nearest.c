/* Each place of the result is the place of the operand that two tables name. */
struct resize_nearest_VARIANT_params {
    int32_t group; /* how often each row of the operand is repeated; 0: as the table says */
    int32_t in_row; /* bytes */
    int32_t out_width;
    int32_t pixel; /* bytes */
};

struct resize_nearest_VARIANT_tables {
    const int16_t *rows;
    const int16_t *columns;
};

static void resize_nearest_VARIANT(const struct resize_nearest_VARIANT_params *p,
                                   const struct resize_nearest_VARIANT_tables *q, const void *in, int32_t rows,
                                   int32_t above, int32_t out_rows, void *out)
{
    uint8_t *target = (uint8_t *)out;
    for (int32_t y = 0; y < out_rows * (p->group > 0 ? p->group : 1); y++) {
        const uint8_t *const row = (const uint8_t *)in + (p->group > 0 ? y / p->group : q->rows[y]) * p->in_row;
        for (int32_t x = 0; x < p->out_width; x++) {
            (void)memcpy(target, row + q->columns[x] * p->pixel, (size_t)p->pixel);
            target += p->pixel;
        }
    }
}
