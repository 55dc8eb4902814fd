/* uses: window, least_of, dot_VARIANT, rescaled_VARIANT */
/* A convolution with windows of one pixel and the depthwise convolution that reads its result, of which only four */
/* channels of a tile are ever there. */
struct expanded_depthwise_VARIANT_params {
#include "expanded_fields.part"
    int32_t zero; /* of the map between */
    int32_t wide_least;
    int32_t wide_most;
    int32_t out_zero;
    int32_t least;
    int32_t most;
};

struct expanded_depthwise_VARIANT_tables {
    const weight_t *weights; /* of 4 channels, then of the next 4: [kernel_height, kernel_width, 4] */
    const sum_t *bias;       /* what zero adds to each channel is taken off */
    const int32_t *multiplier;
    const int8_t *shift;
    const weight_t *wide_weights; /* of the convolution before: [channels, in_channels] */
    const sum_t *wide_bias;
    const int32_t *wide_multiplier;
    const int8_t *wide_shift;
};

/* Up to 4 channels, from c on, of `count` pixels of the map between. */
static void expanded_depthwise_VARIANT_tile(const struct expanded_depthwise_VARIANT_params *p,
                                            const struct expanded_depthwise_VARIANT_tables *q, const element_t *in,
                                            int32_t count, int32_t c, int32_t channels, element_t *tile)
{
    for (int32_t i = 0; i < count; i++) {
        sum_t sums[4] = {0, 0, 0, 0};
        dot_VARIANT(in + i * p->in_channels, q->wide_weights + c * p->in_channels, p->in_channels, p->in_channels,
                    channels, sums);
        rescaled_VARIANT(sums, q->wide_bias + c, q->wide_multiplier + c, q->wide_shift + c, channels, p->zero,
                         p->wide_least, p->wide_most, tile + i * 4);
    }
}

/* The same channels of a pixel of the result, whose window begins at `left`; rows taps[0] to taps[1] of a window lie */
/* in the map, and columns `first` to `first` + `pitch` of it in the tile. */
static void expanded_depthwise_VARIANT_pixel(const struct expanded_depthwise_VARIANT_params *p,
                                             const struct expanded_depthwise_VARIANT_tables *q, const element_t *tile,
                                             const int32_t taps[2], int32_t left, int32_t first, int32_t pitch,
                                             int32_t c, int32_t channels, element_t *out)
{
    sum_t sums[4] = {0, 0, 0, 0};
    const weight_t *w = q->weights + c * p->kernel_height * p->kernel_width;
    for (int32_t y = 0; y < p->kernel_height; y++) {
        const int inside = y >= taps[0] && y < taps[1];
        for (int32_t x = left - first; x < left - first + p->kernel_width; x++) {
            if (inside && x >= 0 && x < pitch) {
                const element_t *const i = tile + ((y - taps[0]) * pitch + x) * 4;
                for (int32_t k = 0; k < channels; k++) {
                    sums[k] += (product_t)i[k] * w[k];
                }
            } else {
                for (int32_t k = 0; k < channels; k++) {
                    sums[k] += (product_t)p->zero * w[k];
                }
            }
            w += channels;
        }
    }
    rescaled_VARIANT(sums, q->bias + c, q->multiplier + c, q->shift + c, channels, p->out_zero, p->least, p->most, out);
}

#include "expanded_rows.part"
