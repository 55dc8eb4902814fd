/* uses: least_of, dot_VARIANT, rescaled_VARIANT, clamp, requantise */
/* A convolution with windows of one pixel, of whose result only the mean, or the sum, of each channel is kept: */
/* over all pixels, or over those of each row. */
struct pooled_conv_2d_VARIANT_params {
#include "pooled_fields.part"
    int32_t out_zero;
    int32_t least;
    int32_t most;
    int32_t pool_multiplier; /* over the number of pixels; 0: both have one scale, the sum is divided */
    int32_t pool_shift;
    int32_t pool_zero;
    int32_t pool_divisor;
    int32_t pool_least;
    int32_t pool_most;
};

struct pooled_conv_2d_VARIANT_tables {
    const weight_t *weights; /* [out_channels, in_channels] */
#include "folded_scales.part"
};

/* Up to 4 channels, from c on; how many these are. */
static int32_t pooled_conv_2d_VARIANT_channels(const struct pooled_conv_2d_VARIANT_params *p,
                                               const struct pooled_conv_2d_VARIANT_tables *q, const element_t *in,
                                               int32_t c, out_t *out)
{
    int32_t totals[4] = {0, 0, 0, 0};
    const int32_t channels = least_of(p->out_channels - c, 4);
    for (int32_t i = 0; i < p->pixels; i++) {
        sum_t sums[4] = {0, 0, 0, 0};
        element_t pixel[4];
        dot_VARIANT(in + i * p->in_channels, q->weights + c * p->in_channels, p->in_channels, p->in_channels, channels,
                    sums);
        rescaled_VARIANT(sums, q->bias + c, q->multiplier + c, q->shift + c, channels, p->out_zero, p->least, p->most,
                         pixel);
        for (int32_t k = 0; k < channels; k++) {
            totals[k] += pixel[k];
        }
    }
    for (int32_t k = 0; k < channels; k++) {
        int32_t mean;
        if (p->pool_multiplier == 0) {
            mean = (totals[k] + (totals[k] > 0 ? p->pool_divisor / 2 : -(p->pool_divisor / 2))) / p->pool_divisor;
        } else {
            mean = requantise(totals[k] - p->pixels * p->out_zero, p->pool_multiplier, p->pool_shift);
            mean += p->pool_zero;
        }
        out[k] = (out_t)clamp(mean, p->pool_least, p->pool_most);
    }
    return channels;
}

#include "pooled_rows.part"
