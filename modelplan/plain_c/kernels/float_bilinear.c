/* Between two rows and two columns, which tables name, with how far behind the first. */
struct float_bilinear_VARIANT_params {
    int32_t in_width;
    int32_t out_width;
    int32_t channels;
};

struct float_bilinear_VARIANT_tables {
    const int16_t *row_first;
    const int16_t *row_second;
    const float *row_part;
    const int16_t *column_first;
    const int16_t *column_second;
    const float *column_part;
};

static void float_bilinear_VARIANT(const struct float_bilinear_VARIANT_params *p,
                                   const struct float_bilinear_VARIANT_tables *q, const element_t *in, int32_t rows,
                                   int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t pitch = p->in_width * p->channels;
    for (int32_t y = 0; y < out_rows; y++) {
        const element_t *const a = in + q->row_first[y] * pitch;
        const element_t *const b = in + q->row_second[y] * pitch;
        const float down = q->row_part[y];
        for (int32_t x = 0; x < p->out_width; x++) {
            const int32_t i = q->column_first[x] * p->channels;
            const int32_t j = q->column_second[x] * p->channels;
            const float along = q->column_part[x];
            for (int32_t c = 0; c < p->channels; c++) {
                *out = a[i + c] * (1.0f - down) * (1.0f - along) + b[i + c] * down * (1.0f - along) +
                       a[j + c] * (1.0f - down) * along + b[j + c] * down * along + 0.0f;
                out++;
            }
        }
    }
}
