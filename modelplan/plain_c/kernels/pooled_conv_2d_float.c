/* uses: least_of, float_dot_VARIANT, float_bounded_VARIANT */
/* A convolution of floats with windows of one pixel, of whose result only the mean of each channel is kept: over all */
/* pixels, or over those of each row. The fewer numbers one sum adds, the fewer bits it loses. */
struct pooled_conv_2d_VARIANT_params {
#include "pooled_fields.part"
    int32_t together; /* pixels that are added to each other before others are */
    float least;
    float most;
    float count; /* by which the sum is divided */
    float pool_least;
    float pool_most;
};

struct pooled_conv_2d_VARIANT_tables {
    const weight_t *weights; /* of four channels side by side: [in_channels, 4] */
    const sum_t *bias;
};

/* Up to 16 channels, from c on; how many these are. */
static int32_t pooled_conv_2d_VARIANT_channels(const struct pooled_conv_2d_VARIANT_params *p,
                                               const struct pooled_conv_2d_VARIANT_tables *q, const element_t *in,
                                               int32_t c, out_t *out)
{
    const int32_t depth = p->in_channels;
    const int32_t channels = least_of(p->out_channels - c, 16);
    sum_t totals[16] = {0.0f};
    for (int32_t first = 0; first < p->pixels; first += p->together) {
        const int32_t end = first + least_of(p->pixels - first, p->together);
        sum_t part[16] = {0.0f};
        for (int32_t i = first; i < end; i++) {
            sum_t pixel[16] = {0.0f};
            float_dot_VARIANT(in + i * depth, q->weights + c * depth, depth, 0, depth, channels, pixel);
            float_bounded_VARIANT(pixel, q->bias + c, channels, p->least, p->most, pixel);
            for (int32_t k = 0; k < channels; k++) {
                part[k] += pixel[k];
            }
        }
        for (int32_t k = 0; k < channels; k++) {
            totals[k] += part[k];
        }
    }
    for (int32_t k = 0; k < channels; k++) {
        const float mean = totals[k] / p->count;
        const float low = mean < p->pool_least ? p->pool_least : mean;
        out[k] = low > p->pool_most ? p->pool_most : low;
    }
    return channels;
}

#include "pooled_rows.part"
