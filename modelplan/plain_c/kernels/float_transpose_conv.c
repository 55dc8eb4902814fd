/* uses: least_of, float_dot_VARIANT, float_bounded_VARIANT */
/* A transposed convolution of floats, gathered place by place in the order in which the operand would be spread. */
struct float_transpose_conv_VARIANT_params {
#include "convolution_fields.part"
    int32_t pad_left;
    int32_t pad_top;
    int32_t before; /* rows of the operand that lie above the map for the first rows of the result */
    int32_t group;  /* rows of the map that are computed for each row that is asked for */
    float least;
    float most;
};

struct float_transpose_conv_VARIANT_tables {
    const weight_t *weights; /* of four channels: [kernel_height, kernel_width, in_channels, 4] */
    const sum_t *bias;
};

/* The sums of up to 16 channels from c on at one place. */
static void float_transpose_conv_VARIANT_sums(const struct float_transpose_conv_VARIANT_params *p,
                                              const struct float_transpose_conv_VARIANT_tables *q, const element_t *in,
                                              int32_t rows, int32_t y, int32_t x, int32_t c, int32_t channels,
                                              sum_t *sums)
{
    const int32_t size = p->kernel_height * p->kernel_width * p->in_channels;
    for (int32_t i = p->kernel_height - 1; i >= 0; i--) {
        const int32_t top = y - i;
        if (top < 0 || top % p->stride_height != 0 || top / p->stride_height >= rows) {
            continue;
        }
        for (int32_t j = p->kernel_width - 1; j >= 0; j--) {
            const int32_t left = x - j;
            if (left >= 0 && left % p->stride_width == 0 && left / p->stride_width < p->in_width) {
                const int32_t place = top / p->stride_height * p->in_width + left / p->stride_width;
                const int32_t at = (i * p->kernel_width + j) * p->in_channels;
                float_dot_VARIANT(in + place * p->in_channels, q->weights + c * size, size, at, p->in_channels, channels,
                                  sums);
            }
        }
    }
}

static void float_transpose_conv_VARIANT(const struct float_transpose_conv_VARIANT_params *p,
                                         const struct float_transpose_conv_VARIANT_tables *q, const element_t *in,
                                         int32_t rows, int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t first = p->pad_top + (p->before - above) * p->stride_height;
    for (int32_t y = 0; y < out_rows * p->group; y++) {
        for (int32_t x = 0; x < p->out_width; x++) {
            for (int32_t c = 0; c < p->out_channels; c += 16) {
                sum_t sums[16] = {0.0f};
                const int32_t channels = least_of(p->out_channels - c, 16);
                float_transpose_conv_VARIANT_sums(p, q, in, rows, y + first, x + p->pad_left, c, channels, sums);
                float_bounded_VARIANT(sums, q->bias + c, channels, p->least, p->most, out + c);
            }
            out += p->out_channels;
        }
    }
}
