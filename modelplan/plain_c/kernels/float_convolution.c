/* uses: window, weight_of */
/* A convolution with groups; weights are [out_channels, kernel_height, kernel_width, in_channels / groups], or, where */
/* each channel is a group, [kernel_height, kernel_width, out_channels]. */
struct float_convolution_VARIANT_params {
    const weight_t *weights;
    const sum_t *bias;
    int32_t depthwise;
#include "convolution_fields.part"
#include "dilation_fields.part"
    int32_t groups;
    float least;
    float most;
};

/* The sum of output channel c at one place, whose first tap is element `at` of the map. */
static float float_convolution_VARIANT_sum(const struct float_convolution_VARIANT_params *p, const element_t *in,
                                           int32_t at, int32_t c, const int32_t taps[4])
{
    const int32_t depth = p->in_channels / p->groups;
    const int32_t first = c / (p->out_channels / p->groups) * depth;
    const int32_t pitch = p->depthwise != 0 ? p->out_channels : depth;
    const weight_t *const weights =
        p->depthwise != 0 ? p->weights + c : p->weights + c * p->kernel_height * p->kernel_width * depth;
    float sum = 0.0f;
    for (int32_t y = taps[0]; y < taps[1]; y++) {
        for (int32_t x = taps[2]; x < taps[3]; x++) {
            const int32_t place = (y * p->dilation_height * p->in_width + x * p->dilation_width) * p->in_channels;
            const element_t *const i = in + at + place + first;
            const weight_t *const w = weights + (y * p->kernel_width + x) * pitch;
            for (int32_t n = 0; n < depth; n++) {
                sum += i[n] * weight_of(w[n]);
            }
        }
    }
    return sum + p->bias[c];
}

static void float_convolution_VARIANT(const struct float_convolution_VARIANT_params *p, const element_t *in,
                                      int32_t rows, int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t y = 0; y < out_rows; y++) {
        int32_t taps[4];
        const int32_t top = y * p->stride_height - above;
        window(top, p->kernel_height, p->dilation_height, rows, &taps[0], &taps[1]);
        for (int32_t x = 0; x < p->out_width; x++) {
            const int32_t left = x * p->stride_width - p->pad_left;
            window(left, p->kernel_width, p->dilation_width, p->in_width, &taps[2], &taps[3]);
            const int32_t at = (top * p->in_width + left) * p->in_channels;
            for (int32_t c = 0; c < p->out_channels; c++) {
                const float sum = float_convolution_VARIANT_sum(p, in, at, c, taps);
                const float low = sum < p->least ? p->least : sum;
                *out = low > p->most ? p->most : low;
                out++;
            }
        }
    }
}
