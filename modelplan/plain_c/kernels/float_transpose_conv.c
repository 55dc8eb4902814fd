/* uses: weight_of */
/* A transposed convolution of floats, gathered place by place in the order in which the operand would be spread. */
struct float_transpose_conv_VARIANT_params {
    const weight_t *weights; /* [out_channels, kernel_height, kernel_width, in_channels] */
    const sum_t *bias;
#include "convolution_fields.part"
    int32_t pad_left;
    int32_t pad_top;
    int32_t before; /* rows of the operand that lie above the map for the first rows of the result */
    int32_t group;  /* rows of the map that are computed for each row that is asked for */
    float least;
    float most;
};

static float float_transpose_conv_VARIANT_sum(const struct float_transpose_conv_VARIANT_params *p, const element_t *in,
                                              int32_t rows, int32_t y, int32_t x, int32_t c)
{
    float sum = 0.0f;
    for (int32_t i = p->kernel_height - 1; i >= 0; i--) {
        const int32_t top = y - i;
        if (top < 0 || top % p->stride_height != 0 || top / p->stride_height >= rows) {
            continue;
        }
        for (int32_t j = p->kernel_width - 1; j >= 0; j--) {
            const int32_t left = x - j;
            if (left >= 0 && left % p->stride_width == 0 && left / p->stride_width < p->in_width) {
                const int32_t place = top / p->stride_height * p->in_width + left / p->stride_width;
                const element_t *const at = in + place * p->in_channels;
                const weight_t *const w =
                    p->weights + ((c * p->kernel_height + i) * p->kernel_width + j) * p->in_channels;
                for (int32_t n = 0; n < p->in_channels; n++) {
                    sum += at[n] * weight_of(w[n]);
                }
            }
        }
    }
    return sum;
}

static void float_transpose_conv_VARIANT(const struct float_transpose_conv_VARIANT_params *p, const element_t *in,
                                         int32_t rows, int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t first = p->pad_top + (p->before - above) * p->stride_height;
    for (int32_t y = 0; y < out_rows * p->group; y++) {
        for (int32_t x = 0; x < p->out_width; x++) {
            for (int32_t c = 0; c < p->out_channels; c++) {
                float sum = float_transpose_conv_VARIANT_sum(p, in, rows, y + first, x + p->pad_left, c) + p->bias[c];
                sum = sum < p->least ? p->least : sum;
                *out = sum > p->most ? p->most : sum;
                out++;
            }
        }
    }
}
