/* uses: window, clamp, requantise_sum, sum_of */
struct depthwise_conv_2d_VARIANT_params {
    const weight_t *weights; /* [kernel_height, kernel_width, in_channels * depth_multiplier] */
#include "folded_scales.part"
#include "depthwise_fields.part"
#include "dilation_fields.part"
#include "range_fields.part"
};

/* The sums of output channels [c, c + channels), 4 at most, at one place, whose first tap is element `at` of the map. */
/* Taps [taps[0], taps[1]) x [taps[2], taps[3]) lie in the map. */
static void depthwise_conv_2d_VARIANT_sums(const struct depthwise_conv_2d_VARIANT_params *p, const element_t *in,
                                           int32_t at, int32_t c, const int32_t taps[4], int32_t channels, sum_t *sums)
{
    const int32_t pitch = p->in_channels * p->depth_multiplier;
    const int32_t column = p->dilation_width * p->in_channels;
    const int32_t line = p->dilation_height * p->in_width * p->in_channels;
    int32_t from[4] = {0, 0, 0, 0};
    for (int32_t k = 0; k < channels; k++) {
        from[k] = (c + k) / p->depth_multiplier;
    }
    for (int32_t y = taps[0]; y < taps[1]; y++) {
        const element_t *i = in + at + y * line + taps[2] * column;
        const weight_t *w = p->weights + (y * p->kernel_width + taps[2]) * pitch + c;
        if (channels == 4 && p->depth_multiplier == 1) {
            i += c;
            for (int32_t x = taps[2]; x < taps[3]; x++) {
                sums[0] += (product_t)i[0] * w[0];
                sums[1] += (product_t)i[1] * w[1];
                sums[2] += (product_t)i[2] * w[2];
                sums[3] += (product_t)i[3] * w[3];
                i += column;
                w += pitch;
            }
        } else {
            for (int32_t x = taps[2]; x < taps[3]; x++) {
                for (int32_t k = 0; k < channels; k++) {
                    sums[k] += (product_t)i[from[k]] * w[k];
                }
                i += column;
                w += pitch;
            }
        }
    }
}

/* The same for the taps that lie beside the map, where all elements are in_zero. */
static void depthwise_conv_2d_VARIANT_rest(const struct depthwise_conv_2d_VARIANT_params *p, int32_t c,
                                           const int32_t taps[4], int32_t channels, sum_t *sums)
{
    const weight_t *w = p->weights + c;
    for (int32_t y = 0; y < p->kernel_height; y++) {
        for (int32_t x = 0; x < p->kernel_width; x++) {
            if (y < taps[0] || y >= taps[1] || x < taps[2] || x >= taps[3]) {
                for (int32_t k = 0; k < channels; k++) {
                    sums[k] += (product_t)p->in_zero * w[k];
                }
            }
            w += p->in_channels * p->depth_multiplier;
        }
    }
}

static void depthwise_conv_2d_VARIANT(const struct depthwise_conv_2d_VARIANT_params *p, const element_t *in,
                                      int32_t rows, int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t all = p->in_channels * p->depth_multiplier;
    for (int32_t y = 0; y < out_rows; y++) {
        int32_t taps[4];
        const int32_t top = y * p->stride_height - above;
        window(top, p->kernel_height, p->dilation_height, rows, &taps[0], &taps[1]);
        for (int32_t x = 0; x < p->out_width; x++) {
            const int32_t left = x * p->stride_width - p->pad_left;
            window(left, p->kernel_width, p->dilation_width, p->in_width, &taps[2], &taps[3]);
            const int whole = (taps[1] - taps[0]) * (taps[3] - taps[2]) == p->kernel_height * p->kernel_width;
            const int32_t at = (top * p->in_width + left) * p->in_channels;
            for (int32_t c = 0; c < all; c += 4) {
                sum_t sums[4] = {0, 0, 0, 0};
                const int32_t channels = all - c < 4 ? all - c : 4;
                depthwise_conv_2d_VARIANT_sums(p, in, at, c, taps, channels, sums);
                if (!whole) {
                    depthwise_conv_2d_VARIANT_rest(p, c, taps, channels, sums);
                }
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
