/* uses: window, least_of, weight_of, float_dot_VARIANT, float_bounded_VARIANT */
/* A convolution of floats with windows of one pixel and the depthwise convolution that reads its result, of which */
/* only four channels of a tile are ever there. */
struct expanded_depthwise_VARIANT_params {
#include "expanded_fields.part"
    float wide_least;
    float wide_most;
    float least;
    float most;
};

struct expanded_depthwise_VARIANT_tables {
    const weight_t *weights; /* [kernel_height, kernel_width, channels] */
    const sum_t *bias;
    const weight_t *wide_weights; /* of the convolution before, four channels side by side: [in_channels, 4] */
    const sum_t *wide_bias;
};

static void expanded_depthwise_VARIANT_tile(const struct expanded_depthwise_VARIANT_params *p,
                                            const struct expanded_depthwise_VARIANT_tables *q, const element_t *in,
                                            int32_t count, int32_t c, int32_t channels, element_t *tile)
{
    const int32_t depth = p->in_channels;
    for (int32_t i = 0; i < count; i++) {
        sum_t sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        float_dot_VARIANT(in + i * depth, q->wide_weights + c * depth, depth, 0, depth, channels, sums);
        float_bounded_VARIANT(sums, q->wide_bias + c, channels, p->wide_least, p->wide_most, tile + i * 4);
    }
}

static void expanded_depthwise_VARIANT_pixel(const struct expanded_depthwise_VARIANT_params *p,
                                             const struct expanded_depthwise_VARIANT_tables *q, const element_t *tile,
                                             const int32_t taps[2], int32_t left, int32_t first, int32_t pitch,
                                             int32_t c, int32_t channels, element_t *out)
{
    sum_t sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int32_t taps_across[2];
    window(left - first, p->kernel_width, 1, pitch, &taps_across[0], &taps_across[1]);
    for (int32_t y = taps[0]; y < taps[1]; y++) {
        for (int32_t x = taps_across[0]; x < taps_across[1]; x++) {
            const element_t *const i = tile + ((y - taps[0]) * pitch + left - first + x) * 4;
            const weight_t *const w = q->weights + (y * p->kernel_width + x) * p->channels + c;
            for (int32_t k = 0; k < channels; k++) {
                sums[k] += i[k] * weight_of(w[k]);
            }
        }
    }
    float_bounded_VARIANT(sums, q->bias + c, channels, p->least, p->most, out);
}

#include "expanded_rows.part"
