/* uses: clamp, requantise_sum, sum_of */
/* A transposed convolution: each element of the operand adds a kernel to the result, gathered place by place. */
struct transpose_conv_VARIANT_params {
#include "convolution_fields.part"
    int32_t pad_left;
    int32_t pad_top;
    int32_t before; /* rows of the operand that lie above the map for the first rows of the result */
    int32_t group;  /* rows of the map that are computed for each row that is asked for */
#include "range_fields.part"
};

struct transpose_conv_VARIANT_tables {
    const weight_t *weights; /* [out_channels, kernel_height, kernel_width, in_channels] */
    const sum_t *bias;
    const int32_t *multiplier;
    const int8_t *shift;
};

/* What one element of the operand adds. */
static sum_t transpose_conv_VARIANT_dot(const element_t *in, const weight_t *weights, int32_t n, int32_t zero)
{
    sum_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        sum += (product_t)(in[i] - zero) * weights[i];
    }
    return sum;
}

static sum_t transpose_conv_VARIANT_sum(const struct transpose_conv_VARIANT_params *p,
                                        const struct transpose_conv_VARIANT_tables *q, const element_t *in,
                                        int32_t rows, int32_t y, int32_t x, int32_t c)
{
    sum_t sum = 0;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int32_t top = y - i;
        if (top < 0 || top % p->stride_height != 0 || top / p->stride_height >= rows) {
            continue;
        }
        for (int32_t j = 0; j < p->kernel_width; j++) {
            const int32_t left = x - j;
            if (left >= 0 && left % p->stride_width == 0 && left / p->stride_width < p->in_width) {
                const int32_t place = top / p->stride_height * p->in_width + left / p->stride_width;
                const weight_t *const w =
                    q->weights + ((c * p->kernel_height + i) * p->kernel_width + j) * p->in_channels;
                sum += transpose_conv_VARIANT_dot(in + place * p->in_channels, w, p->in_channels, p->in_zero);
            }
        }
    }
    return sum;
}

static void transpose_conv_VARIANT(const struct transpose_conv_VARIANT_params *p,
                                   const struct transpose_conv_VARIANT_tables *q, const element_t *in, int32_t rows,
                                   int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t first = p->pad_top + (p->before - above) * p->stride_height;
    for (int32_t y = 0; y < out_rows * p->group; y++) {
        for (int32_t x = 0; x < p->out_width; x++) {
            for (int32_t c = 0; c < p->out_channels; c++) {
                const sum_t all = transpose_conv_VARIANT_sum(p, q, in, rows, y + first, x + p->pad_left, c);
                const int32_t scaled = requantise_sum(sum_of(all, q->bias[c]), q->multiplier[c], q->shift[c]);
                *out = (element_t)clamp(scaled + p->out_zero, p->least, p->most);
                out++;
            }
        }
    }
}
