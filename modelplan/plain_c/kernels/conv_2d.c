/* uses: window, dot_VARIANT, constant_dot_VARIANT, clamp, requantise_sum, sum_of */
struct conv_2d_VARIANT_params {
    const weight_t *weights; /* [out_channels, kernel_height, kernel_width, in_channels / groups] */
#include "folded_scales.part"
#include "convolution_fields.part"
#include "dilation_fields.part"
    int32_t groups;
#include "range_fields.part"
};

/* The sums of up to 4 output channels at one place, whose first tap is element `at` of the map. */
/* Taps [taps[0], taps[1]) x [taps[2], taps[3]) lie in the map. */
static void conv_2d_VARIANT_sums(const struct conv_2d_VARIANT_params *p, const element_t *in, int32_t at,
                                 const weight_t *weights, const int32_t taps[4], int32_t channels, sum_t *sums)
{
    const int32_t depth = p->in_channels / p->groups;
    const int32_t line = p->kernel_width * depth;
    const int32_t pitch = p->kernel_height * line;
    const int32_t column = p->dilation_width * p->in_channels;
    for (int32_t y = 0; y < p->kernel_height; y++) {
        const int32_t row = at + y * p->dilation_height * p->in_width * p->in_channels;
        const weight_t *const w = weights + y * line;
        const int inside = y >= taps[0] && y < taps[1];
        const int32_t first = inside ? taps[2] : p->kernel_width;
        const int32_t end = inside ? taps[3] : p->kernel_width;
        if (first > 0) {
            constant_dot_VARIANT(p->in_zero, w, pitch, first * depth, channels, sums);
        }
        if (end < p->kernel_width) {
            constant_dot_VARIANT(p->in_zero, w + end * depth, pitch, line - end * depth, channels, sums);
        }
        if (column == depth && end > first) {
            dot_VARIANT(in + row + first * depth, w + first * depth, pitch, (end - first) * depth, channels, sums);
        } else {
            for (int32_t x = first; x < end; x++) {
                dot_VARIANT(in + row + x * column, w + x * depth, pitch, depth, channels, sums);
            }
        }
    }
}

static void conv_2d_VARIANT(const struct conv_2d_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                            int32_t out_rows, element_t *out)
{
    const int32_t depth = p->in_channels / p->groups;
    const int32_t filters = p->out_channels / p->groups;
    const int32_t size = p->kernel_height * p->kernel_width * depth;
    for (int32_t y = 0; y < out_rows; y++) {
        int32_t taps[4];
        const int32_t top = y * p->stride_height - above;
        window(top, p->kernel_height, p->dilation_height, rows, &taps[0], &taps[1]);
        for (int32_t x = 0; x < p->out_width; x++) {
            const int32_t left = x * p->stride_width - p->pad_left;
            window(left, p->kernel_width, p->dilation_width, p->in_width, &taps[2], &taps[3]);
            for (int32_t group = 0; group < p->groups; group++) {
                const int32_t at = (top * p->in_width + left) * p->in_channels + group * depth;
                const int32_t end = (group + 1) * filters;
                for (int32_t c = group * filters; c < end; c += 4) {
                    sum_t sums[4] = {0, 0, 0, 0};
                    const int32_t channels = end - c < 4 ? end - c : 4;
                    conv_2d_VARIANT_sums(p, in, at, p->weights + c * size, taps, channels, sums);
                    for (int32_t k = 0; k < channels; k++) {
                        const sum_t sum = sum_of(sums[k], p->bias[c + k]);
                        const int32_t scaled = requantise_sum(sum, p->multiplier[c + k], p->shift[c + k]);
                        *out = (element_t)clamp(scaled + p->out_zero, p->least, p->most);
                        out++;
                    }
                }
            }
        }
    }
}
