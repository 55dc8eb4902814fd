/* Between two rows and two columns, which tables name, with parts of 1024. */
struct resize_bilinear_VARIANT_params {
    int32_t in_width;
    int32_t out_width;
    int32_t channels;
};

struct resize_bilinear_VARIANT_tables {
    const int16_t *row_first;
    const int16_t *row_second;
    const int16_t *row_part;
    const int16_t *column_first;
    const int16_t *column_second;
    const int16_t *column_part;
};

static void resize_bilinear_VARIANT(const struct resize_bilinear_VARIANT_params *p,
                                    const struct resize_bilinear_VARIANT_tables *q, const element_t *in, int32_t rows,
                                    int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t pitch = p->in_width * p->channels;
    for (int32_t y = 0; y < out_rows; y++) {
        const element_t *const a = in + q->row_first[y] * pitch;
        const element_t *const b = in + q->row_second[y] * pitch;
        const int32_t down = q->row_part[y];
        for (int32_t x = 0; x < p->out_width; x++) {
            const int32_t i = q->column_first[x] * p->channels;
            const int32_t j = q->column_second[x] * p->channels;
            const int32_t along = q->column_part[x];
            for (int32_t c = 0; c < p->channels; c++) {
                const int64_t first = (int64_t)a[i + c] * (1024 - down) + (int64_t)b[i + c] * down;
                const int64_t second = (int64_t)a[j + c] * (1024 - down) + (int64_t)b[j + c] * down;
                const int64_t sum = first * (1024 - along) + second * along;
                *out = (element_t)((sum + (sum > 0 ? 524288 : -524288)) / 1048576);
                out++;
            }
        }
    }
}
