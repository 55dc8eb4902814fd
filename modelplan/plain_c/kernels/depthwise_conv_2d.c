/* uses: window, least_of, four_sums_VARIANT, rescaled_VARIANT */
struct depthwise_conv_2d_VARIANT_params {
    const weight_t *weights; /* of 4 channels, then of the next 4: [kernel_height, kernel_width, 4] */
#include "folded_scales.part"
#include "depthwise_fields.part"
#include "dilation_fields.part"
#include "range_fields.part"
};

/* Taps of a window, lines x columns, that all lie in the map, or all beside it where the same zeros are read. */
struct depthwise_conv_2d_VARIANT_taps {
    const element_t *in; /* of the first tap; so far apart are lines and columns, 0 where zeros are read */
    int32_t line;
    int32_t column;
    int32_t before; /* how many taps of the window come before the first */
    int32_t lines;
    int32_t columns;
};

/* Adds the products of taps of a window so `wide` for 4 channels of the result, each of its own channel of the map, */
/* from c on. */
WITHIN void depthwise_conv_2d_VARIANT_add(const struct depthwise_conv_2d_VARIANT_taps *t, int32_t wide, int32_t c,
                                          const weight_t *weights, struct four_sums_VARIANT *sums)
{
    const element_t *in = (t->column != 0 ? t->in + c : t->in);
    const weight_t *w = weights + 4 * t->before;
    const int32_t column = t->column;
    const int32_t line = t->line;
    const int32_t next = 4 * wide;
    const int32_t columns = t->columns;
    if (columns == 3) {
        for (int32_t lines = t->lines; lines > 0; lines--) {
            add_four_VARIANT(sums, in, w);
            add_four_VARIANT(sums, in + column, w + 4);
            add_four_VARIANT(sums, in + 2 * column, w + 8);
            in += line;
            w += next;
        }
        return;
    }
    for (int32_t lines = t->lines; lines > 0; lines--) {
        const element_t *i = in;
        for (int32_t x = 0; x < columns; x++) {
            add_four_VARIANT(sums, i, w + 4 * x);
            i += column;
        }
        in += line;
        w += next;
    }
}

/* The same where all are of channel c of the map. */
APART void depthwise_conv_2d_VARIANT_add_alike(const struct depthwise_conv_2d_VARIANT_taps *t, int32_t wide, int32_t c,
                                                const weight_t *weights, struct four_sums_VARIANT *sums)
{
    struct four_sums_VARIANT all = *sums;
    for (int32_t y = 0; y < t->lines; y++) {
        const element_t *i = t->in + y * t->line + (t->column != 0 ? c : 0);
        const weight_t *w = weights + 4 * (t->before + y * wide);
        for (int32_t x = t->columns; x > 0; x--) {
            add_alike_VARIANT(&all, i, w);
            i += t->column;
            w += 4;
        }
    }
    *sums = all;
}

/* The sum of one channel of the result, of channel c of the map; so far apart are the weights of taps. */
static sum_t depthwise_conv_2d_VARIANT_one(const struct depthwise_conv_2d_VARIANT_taps *t, int32_t wide, int32_t c,
                                           const weight_t *weights, int32_t pitch)
{
    sum_t sum = 0;
    for (int32_t y = 0; y < t->lines; y++) {
        const element_t *i = t->in + y * t->line + (t->column != 0 ? c : 0);
        const weight_t *w = weights + pitch * (t->before + y * wide);
        for (int32_t x = t->columns; x > 0; x--) {
            sum += (product_t)*i * *w;
            i += t->column;
            w += pitch;
        }
    }
    return sum;
}

/* All channels at a place, of its window in so many parts; each of its own channel of the map. */
APART void depthwise_conv_2d_VARIANT_place(const struct depthwise_conv_2d_VARIANT_params *p,
                                           const struct depthwise_conv_2d_VARIANT_taps *parts, int32_t count,
                                           element_t *out)
{
    const int32_t channels = p->in_channels;
    const int32_t size = p->kernel_height * p->kernel_width;
    for (int32_t c = 0; c < channels; c += 4) {
        const weight_t *const weights = p->weights + c * size;
        const int32_t few = least_of(channels - c, 4);
        struct four_sums_VARIANT four = {{0, 0, 0, 0}};
        sum_t sums[4] = {0, 0, 0, 0};
        if (few == 4) {
            for (int32_t k = 0; k < count; k++) {
                depthwise_conv_2d_VARIANT_add(&parts[k], p->kernel_width, c, weights, &four);
            }
            put_sums_VARIANT(&four, sums);
        } else {
            for (int32_t i = 0; i < few; i++) {
                for (int32_t k = 0; k < count; k++) {
                    sums[i] += depthwise_conv_2d_VARIANT_one(&parts[k], p->kernel_width, c + i, weights + i, few);
                }
            }
        }
        rescaled_VARIANT(sums, p->bias + c, p->multiplier + c, p->shift + c, few, p->out_zero, p->least, p->most,
                         out + c);
    }
}

/* The same where several channels of the result are of one of the map. */
static void depthwise_conv_2d_VARIANT_spread(const struct depthwise_conv_2d_VARIANT_params *p,
                                             const struct depthwise_conv_2d_VARIANT_taps *parts, int32_t count,
                                             element_t *out)
{
    const int32_t channels = p->in_channels * p->depth_multiplier;
    const int32_t size = p->kernel_height * p->kernel_width;
    int32_t from = 0; /* the channel of the map, and how many of the result it has given */
    int32_t given = 0;
    for (int32_t c = 0; c < channels; c += 4) {
        const weight_t *const weights = p->weights + c * size;
        const int32_t few = least_of(channels - c, 4);
        struct four_sums_VARIANT four = {{0, 0, 0, 0}};
        sum_t sums[4] = {0, 0, 0, 0};
        if (few == 4 && given + 4 <= p->depth_multiplier) {
            for (int32_t k = 0; k < count; k++) {
                depthwise_conv_2d_VARIANT_add_alike(&parts[k], p->kernel_width, from, weights, &four);
            }
            put_sums_VARIANT(&four, sums);
            given += 4;
        } else {
            for (int32_t i = 0; i < few; i++) {
                if (given == p->depth_multiplier) {
                    from++;
                    given = 0;
                }
                for (int32_t k = 0; k < count; k++) {
                    sums[i] += depthwise_conv_2d_VARIANT_one(&parts[k], p->kernel_width, from, weights + i, few);
                }
                given++;
            }
        }
        if (given == p->depth_multiplier) {
            from++;
            given = 0;
        }
        rescaled_VARIANT(sums, p->bias + c, p->multiplier + c, p->shift + c, few, p->out_zero, p->least, p->most,
                         out + c);
    }
}

/* Adds lines [top, end) and columns [left, right) of a window, beside the map, to `count` parts: how many there are. */
static int32_t depthwise_conv_2d_VARIANT_beside(const element_t *zeros, int32_t wide, int32_t top, int32_t end,
                                                int32_t left, int32_t right,
                                                struct depthwise_conv_2d_VARIANT_taps *parts, int32_t count)
{
    struct depthwise_conv_2d_VARIANT_taps *const t = &parts[count];
    if (end <= top || right <= left) {
        return count;
    }
    t->in = zeros;
    t->line = 0;
    t->column = 0;
    t->before = top * wide + left;
    t->lines = end - top;
    t->columns = right - left;
    return count + 1;
}

/* A window in parts, of which the first one lies in the map and the others beside it: how many. Its first tap is */
/* element `at` of the map, and taps [taps[0], taps[1]) x [taps[2], taps[3]) lie in it. */
static int32_t depthwise_conv_2d_VARIANT_parts(const struct depthwise_conv_2d_VARIANT_params *p, const element_t *in,
                                               int32_t at, const int32_t taps[4], const element_t zeros[4],
                                               struct depthwise_conv_2d_VARIANT_taps parts[5])
{
    const int32_t wide = p->kernel_width;
    const int32_t none = taps[1] == taps[0] || taps[3] == taps[2] ? 1 : 0;
    const int32_t top = none != 0 ? p->kernel_height : taps[0];
    const int32_t end = none != 0 ? p->kernel_height : taps[1];
    int32_t count = 0;
    if (none == 0) {
        parts[0].line = p->dilation_height * p->in_width * p->in_channels;
        parts[0].column = p->dilation_width * p->in_channels;
        parts[0].in = in + at + taps[0] * parts[0].line + taps[2] * parts[0].column;
        parts[0].before = taps[0] * wide + taps[2];
        parts[0].lines = taps[1] - taps[0];
        parts[0].columns = taps[3] - taps[2];
        count = 1;
    }
    count = depthwise_conv_2d_VARIANT_beside(zeros, wide, 0, top, 0, wide, parts, count);
    count = depthwise_conv_2d_VARIANT_beside(zeros, wide, end, p->kernel_height, 0, wide, parts, count);
    count = depthwise_conv_2d_VARIANT_beside(zeros, wide, top, end, 0, taps[2], parts, count);
    return depthwise_conv_2d_VARIANT_beside(zeros, wide, top, end, taps[3], wide, parts, count);
}

static void depthwise_conv_2d_VARIANT(const struct depthwise_conv_2d_VARIANT_params *p, const element_t *in,
                                      int32_t rows, int32_t above, int32_t out_rows, element_t *out)
{
    const element_t zero = (element_t)p->in_zero;
    const element_t zeros[4] = {zero, zero, zero, zero};
    for (int32_t y = 0; y < out_rows; y++) {
        struct depthwise_conv_2d_VARIANT_taps parts[5];
        int32_t taps[4];
        int32_t count = 0;
        int whole = 0;
        const int32_t top = y * p->stride_height - above;
        window(top, p->kernel_height, p->dilation_height, rows, &taps[0], &taps[1]);
        for (int32_t x = 0; x < p->out_width; x++) {
            const int32_t left = x * p->stride_width - p->pad_left;
            const int32_t right = left + (p->kernel_width - 1) * p->dilation_width;
            if (whole && right < p->in_width) {
                parts[0].in += p->stride_width * p->in_channels; /* as before, but farther on */
            } else {
                window(left, p->kernel_width, p->dilation_width, p->in_width, &taps[2], &taps[3]);
                const int32_t at = (top * p->in_width + left) * p->in_channels;
                count = depthwise_conv_2d_VARIANT_parts(p, in, at, taps, zeros, parts);
                whole = left >= 0 && right < p->in_width && taps[1] > taps[0];
            }
            if (p->depth_multiplier == 1) {
                depthwise_conv_2d_VARIANT_place(p, parts, count, out);
            } else {
                depthwise_conv_2d_VARIANT_spread(p, parts, count, out);
            }
            out += p->in_channels * p->depth_multiplier;
        }
    }
}
