/* uses: window, clamp */
struct max_pool_2d_VARIANT_params {
    int32_t in_width;
    int32_t channels;
    int32_t out_width;
    int32_t kernel_height;
    int32_t kernel_width;
    int32_t stride_height;
    int32_t stride_width;
    int32_t pad_left;
    int32_t least;
    int32_t most;
};

static void max_pool_2d_VARIANT(const struct max_pool_2d_VARIANT_params *p, const element_t *in, int32_t rows,
                                int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t pitch = p->in_width * p->channels;
    for (int32_t y = 0; y < out_rows; y++) {
        int32_t y0;
        int32_t y1;
        const int32_t top = y * p->stride_height - above;
        window(top, p->kernel_height, 1, rows, &y0, &y1);
        for (int32_t x = 0; x < p->out_width; x++) {
            int32_t x0;
            int32_t x1;
            const int32_t left = x * p->stride_width - p->pad_left;
            window(left, p->kernel_width, 1, p->in_width, &x0, &x1);
            for (int32_t c = 0; c < p->channels; c++) {
                element_t most = ELEMENT_MIN;
                for (int32_t i = top + y0; i < top + y1; i++) {
                    const element_t *place = in + i * pitch + (left + x0) * p->channels + c;
                    for (int32_t j = x0; j < x1; j++) {
                        most = *place > most ? *place : most;
                        place += p->channels;
                    }
                }
                *out = (element_t)clamp(most, p->least, p->most);
                out++;
            }
        }
    }
}
