/* uses: window, least_of, dot_VARIANT, constant_dot_VARIANT, rescaled_VARIANT */
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

/* Copies the elements of a window one behind the other, as conv_2d_VARIANT_sums reads them. */
static void conv_2d_VARIANT_gather(const struct conv_2d_VARIANT_params *p, const element_t *in, int32_t at,
                                   const int32_t taps[4], element_t *to)
{
    const int32_t depth = p->in_channels / p->groups;
    for (int32_t y = 0; y < p->kernel_height; y++) {
        const int32_t row = at + y * p->dilation_height * p->in_width * p->in_channels;
        for (int32_t x = 0; x < p->kernel_width; x++) {
            const element_t *from = in + row + x * p->dilation_width * p->in_channels;
            const int inside = y >= taps[0] && y < taps[1] && x >= taps[2] && x < taps[3];
            for (int32_t i = 0; i < depth; i++) {
                *to = inside ? from[i] : (element_t)p->in_zero;
                to++;
            }
        }
    }
}

/* All channels of a group at one place. The window's elements are those of `run`, of which `line` lie one behind the */
/* other: all of them, or those of a line of the window. NULL: neither. */
static void conv_2d_VARIANT_place(const struct conv_2d_VARIANT_params *p, const element_t *in, int32_t at,
                                  const int32_t taps[4], const element_t *run, int32_t line, int32_t group,
                                  element_t *out)
{
    const int32_t row = p->dilation_height * p->in_width * p->in_channels;
    const int32_t size = p->kernel_height * p->kernel_width * (p->in_channels / p->groups);
    const int32_t filters = p->out_channels / p->groups;
    for (int32_t c = group * filters; c < (group + 1) * filters; c += 4) {
        sum_t sums[4] = {0, 0, 0, 0};
        const int32_t channels = least_of((group + 1) * filters - c, 4);
        if (run != NULL) {
            const weight_t *w = p->weights + c * size;
            const weight_t *const end = w + size;
            const element_t *from = run;
            do {
                dot_VARIANT(from, w, size, line, channels, sums);
                from += row;
                w += line;
            } while (w < end);
        } else {
            conv_2d_VARIANT_sums(p, in, at, p->weights + c * size, taps, channels, sums);
        }
        rescaled_VARIANT(sums, p->bias + c, p->multiplier + c, p->shift + c, channels, p->out_zero, p->least, p->most,
                         out + c);
    }
}

static void conv_2d_VARIANT(const struct conv_2d_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                            int32_t out_rows, element_t *out)
{
    enum { FEW = 64 }; /* elements of a window that are copied */
    element_t copied[FEW];
    const int32_t depth = p->in_channels / p->groups;
    const int32_t line = p->kernel_width * depth;
    const int32_t size = p->kernel_height * line;
    const int lined = p->kernel_width == 1 || (p->dilation_width == 1 && p->groups == 1);
    const int joined = lined && p->groups == 1 && p->kernel_width == p->in_width && p->dilation_height == 1;
    for (int32_t y = 0; y < out_rows; y++) {
        int32_t taps[4];
        const int32_t top = y * p->stride_height - above;
        window(top, p->kernel_height, p->dilation_height, rows, &taps[0], &taps[1]);
        for (int32_t x = 0; x < p->out_width; x++) {
            const int32_t left = x * p->stride_width - p->pad_left;
            window(left, p->kernel_width, p->dilation_width, p->in_width, &taps[2], &taps[3]);
            const int whole = (taps[1] - taps[0]) * (taps[3] - taps[2]) == p->kernel_height * p->kernel_width;
            for (int32_t group = 0; group < p->groups; group++) {
                const int32_t at = (top * p->in_width + left) * p->in_channels + group * depth;
                const element_t *run = NULL;
                int32_t together = size;
                if (whole && lined && (joined || p->kernel_height == 1 || size > FEW)) {
                    run = in + at;
                    together = joined ? size : line;
                } else if (size <= FEW) {
                    conv_2d_VARIANT_gather(p, in, at, taps, copied);
                    run = copied;
                }
                conv_2d_VARIANT_place(p, in, at, taps, run, together, group, out);
            }
            out += p->out_channels;
        }
    }
}
