/* uses: window, least_of, weight_of, float_dot_VARIANT, float_bounded_VARIANT */
/* A convolution with groups; weights of four channels are [kernel_height, kernel_width, in_channels / groups, 4], or, */
/* where each channel is a group, those of all [kernel_height, kernel_width, out_channels]. */
struct float_convolution_VARIANT_params {
    int32_t depthwise;
#include "convolution_fields.part"
#include "dilation_fields.part"
    int32_t groups;
    float least;
    float most;
};

struct float_convolution_VARIANT_tables {
    const weight_t *weights;
    const sum_t *bias;
};

/* The sums of up to 4 channels from c on at one place, each of which reads one channel of the map. */
/* Taps [taps[0], taps[1]) x [taps[2], taps[3]) lie in the map, the first of all at element `at`. */
static void float_convolution_VARIANT_apart(const struct float_convolution_VARIANT_params *p,
                                            const struct float_convolution_VARIANT_tables *q, const element_t *in,
                                            int32_t at, const int32_t taps[4], int32_t c, int32_t channels, sum_t *sums)
{
    const int32_t factor = p->out_channels / p->in_channels;
    for (int32_t y = taps[0]; y < taps[1]; y++) {
        const int32_t place = y * p->dilation_height * p->in_width + taps[2] * p->dilation_width;
        const element_t *i = in + at + place * p->in_channels;
        const weight_t *w = q->weights + (y * p->kernel_width + taps[2]) * p->out_channels + c;
        for (int32_t x = taps[2]; x < taps[3]; x++) {
            if (factor == 1 && channels == 4) {
                sums[0] += i[c] * weight_of(w[0]);
                sums[1] += i[c + 1] * weight_of(w[1]);
                sums[2] += i[c + 2] * weight_of(w[2]);
                sums[3] += i[c + 3] * weight_of(w[3]);
            } else {
                for (int32_t k = 0; k < channels; k++) {
                    sums[k] += i[(c + k) / factor] * weight_of(w[k]);
                }
            }
            i += p->dilation_width * p->in_channels;
            w += p->out_channels;
        }
    }
}

/* The same of up to 16 channels of a group, all of whose channels of the map each of them reads. */
static void float_convolution_VARIANT_sums(const struct float_convolution_VARIANT_params *p,
                                           const struct float_convolution_VARIANT_tables *q, const element_t *in,
                                           int32_t at, const int32_t taps[4], int32_t c, int32_t channels, sum_t *sums)
{
    const int32_t depth = p->in_channels / p->groups;
    const int32_t line = p->kernel_width * depth;
    const int32_t size = p->kernel_height * line;
    const int32_t column = p->dilation_width * p->in_channels;
    const int32_t together = column == depth ? taps[3] - taps[2] : 1; /* taps that lie side by side */
    const weight_t *const weights = q->weights + c * size;
    for (int32_t y = taps[0]; y < taps[1]; y++) {
        const element_t *const i = in + at + y * p->dilation_height * p->in_width * p->in_channels;
        for (int32_t x = taps[2]; x < taps[3]; x += together) {
            float_dot_VARIANT(i + x * column, weights, size, y * line + x * depth, together * depth, channels, sums);
        }
    }
}

/* All channels at one place. */
static void float_convolution_VARIANT_place(const struct float_convolution_VARIANT_params *p,
                                            const struct float_convolution_VARIANT_tables *q, const element_t *in,
                                            int32_t at, const int32_t taps[4], element_t *out)
{
    const int32_t depth = p->in_channels / p->groups;
    const int32_t filters = p->out_channels / p->groups;
    if (p->depthwise != 0) {
        for (int32_t c = 0; c < p->out_channels; c += 4) {
            sum_t sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            const int32_t channels = least_of(p->out_channels - c, 4);
            float_convolution_VARIANT_apart(p, q, in, at, taps, c, channels, sums);
            float_bounded_VARIANT(sums, q->bias + c, channels, p->least, p->most, out + c);
        }
        return;
    }
    for (int32_t group = 0; group < p->groups; group++) {
        for (int32_t c = group * filters; c < (group + 1) * filters; c += 16) {
            sum_t sums[16] = {0.0f};
            const int32_t channels = least_of((group + 1) * filters - c, 16);
            float_convolution_VARIANT_sums(p, q, in, at + group * depth, taps, c, channels, sums);
            float_bounded_VARIANT(sums, q->bias + c, channels, p->least, p->most, out + c);
        }
    }
}

static void float_convolution_VARIANT(const struct float_convolution_VARIANT_params *p,
                                      const struct float_convolution_VARIANT_tables *q, const element_t *in,
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
            float_convolution_VARIANT_place(p, q, in, at, taps, out);
            out += p->out_channels;
        }
    }
}
