/* uses: window, least_of, four_sums_VARIANT, rescaled_VARIANT */
struct depthwise_conv_2d_VARIANT_params {
#include "depthwise_fields.part"
#include "dilation_fields.part"
#include "range_fields.part"
};

struct depthwise_conv_2d_VARIANT_tables {
    const weight_t *weights; /* of 4 channels, then of the next 4: [kernel_height, kernel_width, 4] */
#include "folded_scales.part"
};

#include "depthwise_taps.part"

#if defined(__ARM_FEATURE_MVE)
/* The next four weights. */
WITHIN int32x4_t depthwise_conv_2d_VARIANT_next(const int8_t **weights)
{
    int32x4_t next;
    __asm__("vldrb.s32 %q0, [%1], #4" : "=w"(next), "+l"(*weights));
    return next;
}

/* Adds the products of four channels of an element, or of one that all four read, with the next weights. */
WITHIN int32x4_t depthwise_conv_2d_VARIANT_tap(const int8_t *in, int alike, const int8_t **weights, int32x4_t sums)
{
    const int32x4_t w = depthwise_conv_2d_VARIANT_next(weights);
    return alike ? vmlaq_n_s32(sums, w, *in) : vaddq_s32(sums, vmulq_s32(vldrbq_s32(in), w));
}

/* The same for taps of a window so `wide`, from channel c of the map on. */
WITHIN int32x4_t depthwise_conv_2d_VARIANT_part(const struct depthwise_conv_2d_VARIANT_taps *t, int32_t wide,
                                                int32_t c, int alike, const int8_t *weights, int32x4_t sums)
{
    const int turned = wide == 1; /* a window of one column is one line */
    const int32_t column = turned ? t->line : t->column;
    const int32_t columns = turned ? t->lines : t->columns;
    const int32_t line = t->line;
    const int32_t skipped = 4 * (wide - columns);
    const int8_t *in = t->in + (t->column != 0 ? c : 0);
    const int8_t *w = weights + 4 * t->before;
    for (int32_t lines = turned ? 1 : t->lines; lines > 0; lines--) {
        if (columns == 3) {
            sums = depthwise_conv_2d_VARIANT_tap(in, alike, &w, sums);
            sums = depthwise_conv_2d_VARIANT_tap(in + column, alike, &w, sums);
            sums = depthwise_conv_2d_VARIANT_tap(in + 2 * column, alike, &w, sums);
        } else {
            const int8_t *i = in;
            for (int32_t x = columns; x > 0; x--) {
                sums = depthwise_conv_2d_VARIANT_tap(i, alike, &w, sums);
                i += column;
            }
        }
        in += line;
        w += skipped;
    }
    return sums;
}

/* Up to 4 channels at a place, from channel k of the result on, one by one. */
static void depthwise_conv_2d_VARIANT_few(const struct depthwise_conv_2d_VARIANT_params *p,
                                          const struct depthwise_conv_2d_VARIANT_tables *q,
                                          const struct depthwise_conv_2d_VARIANT_taps *parts, int32_t count, int32_t k,
                                          int32_t few, int8_t *out)
{
    const int8_t *const weights = q->weights + k * p->kernel_height * p->kernel_width;
    int32_t sums[4] = {0, 0, 0, 0};
    for (int32_t i = 0; i < few; i++) {
        for (int32_t part = 0; part < count; part++) {
            sums[i] += depthwise_conv_2d_VARIANT_one(&parts[part], p->kernel_width, (k + i) / p->depth_multiplier,
                                                     weights + i, few);
        }
    }
    rescaled_VARIANT(sums, q->bias + k, q->multiplier + k, q->shift + k, few, p->out_zero, p->least, p->most, out + k);
}

/* Adds the products of four elements with the next weights; where they lie beside the map they are `zero`. */
WITHIN int32x4_t depthwise_conv_2d_VARIANT_either(const int8_t *in, uint32_t inside, int32_t zero,
                                                  const int8_t **weights, int32x4_t sums)
{
    const int32x4_t w = depthwise_conv_2d_VARIANT_next(weights);
    if (inside != 0u) {
        return vaddq_s32(sums, vmulq_s32(vldrbq_s32(in), w));
    }
    return vmlaq_n_s32(sums, w, zero);
}

/* Adds those of three neighbours of a line, of which those are in the map whose bit is in `inside`. */
WITHIN int32x4_t depthwise_conv_2d_VARIANT_three(const int8_t *in, int32_t column, uint32_t inside, int32_t zero,
                                                 const int8_t **weights, int32x4_t sums)
{
    sums = depthwise_conv_2d_VARIANT_either(in, inside & 1u, zero, weights, sums);
    in += column;
    sums = depthwise_conv_2d_VARIANT_either(in, inside & 2u, zero, weights, sums);
    in += column;
    return depthwise_conv_2d_VARIANT_either(in, inside & 4u, zero, weights, sums);
}

/* All blocks of 4 channels at a place whose window has 3 x 3 taps, of which those are in the map whose bit is set. */
WITHIN void depthwise_conv_2d_VARIANT_blocks(const struct depthwise_conv_2d_VARIANT_params *p,
                                             const struct depthwise_conv_2d_VARIANT_tables *q, const int8_t *top,
                                             int32_t line, int32_t column, uint32_t inside, int8_t *out)
{
    const int32_t in_zero = p->in_zero;
    const int32_t zero = p->out_zero;
    const int32x4_t least = vdupq_n_s32(p->least);
    const int32x4_t most = vdupq_n_s32(p->most);
    const int8_t *middle = top + line;
    const int8_t *low = middle + line;
    const int8_t *w = q->weights;
    const int32_t *bias = q->bias;
    const int32_t *multiplier = q->multiplier;
    const int8_t *shift = q->shift;
    for (int32_t fours = p->in_channels / 4; fours > 0; fours--) {
        int32x4_t sums = vldrwq_s32(bias);
        sums = depthwise_conv_2d_VARIANT_three(top, column, inside, in_zero, &w, sums);
        sums = depthwise_conv_2d_VARIANT_three(middle, column, inside >> 3, in_zero, &w, sums);
        sums = depthwise_conv_2d_VARIANT_three(low, column, inside >> 6, in_zero, &w, sums);
        rescaled_VARIANT_four(sums, multiplier, shift, zero, least, most, out);
        top += 4;
        middle += 4;
        low += 4;
        bias += 4;
        multiplier += 4;
        shift += 4;
        out += 4;
    }
}

/* The same where all taps are in the map. */
APART void depthwise_conv_2d_VARIANT_nine(const struct depthwise_conv_2d_VARIANT_params *p,
                                          const struct depthwise_conv_2d_VARIANT_tables *q,
                                          const struct depthwise_conv_2d_VARIANT_taps *t, int8_t *out)
{
    depthwise_conv_2d_VARIANT_blocks(p, q, t->in, t->line, t->column, 0x1FFu, out);
}

/* The same where these are. */
APART void depthwise_conv_2d_VARIANT_edge(const struct depthwise_conv_2d_VARIANT_params *p,
                                          const struct depthwise_conv_2d_VARIANT_tables *q,
                                          const struct depthwise_conv_2d_VARIANT_taps *t, int8_t *out)
{
    const int32_t above = t->before / 3;
    const int32_t left = t->before % 3;
    const uint32_t line = ((1u << t->columns) - 1u) << t->before;
    const uint32_t inside = line | (t->lines > 1 ? line << 3 : 0u) | (t->lines > 2 ? line << 6 : 0u);
    depthwise_conv_2d_VARIANT_blocks(p, q, t->in - above * t->line - left * t->column, t->line, t->column, inside, out);
}

/* All channels at a place, of its window in so many parts; each of its own channel of the map. */
APART void depthwise_conv_2d_VARIANT_place(const struct depthwise_conv_2d_VARIANT_params *p,
                                           const struct depthwise_conv_2d_VARIANT_tables *q,
                                           const struct depthwise_conv_2d_VARIANT_taps *parts, int32_t count,
                                           int8_t *out)
{
    const int32_t channels = p->in_channels & ~3;
    const int32_t wide = p->kernel_width;
    const int32_t size = p->kernel_height * wide;
    if (size == 9 && wide == 3 && parts->column != 0) {
        if (count == 1) {
            depthwise_conv_2d_VARIANT_nine(p, q, parts, out);
        } else {
            depthwise_conv_2d_VARIANT_edge(p, q, parts, out);
        }
    } else {
        const int8_t *weights = q->weights;
        for (int32_t c = 0; c < channels; c += 4) {
            int32x4_t sums = vldrwq_s32(q->bias + c);
            for (int32_t k = 0; k < count; k++) {
                if (parts[k].column != 0) {
                    sums = depthwise_conv_2d_VARIANT_part(&parts[k], wide, c, 0, weights, sums);
                } else {
                    sums = depthwise_conv_2d_VARIANT_part(&parts[k], wide, c, 1, weights, sums);
                }
            }
            rescaled_VARIANT_four(sums, q->multiplier + c, q->shift + c, p->out_zero, vdupq_n_s32(p->least),
                                  vdupq_n_s32(p->most), out + c);
            weights += 4 * size;
        }
    }
    if (channels < p->in_channels) {
        depthwise_conv_2d_VARIANT_few(p, q, parts, count, channels, p->in_channels - channels, out);
    }
}

/* The same where several channels of the result are of one of the map. */
APART void depthwise_conv_2d_VARIANT_spread(const struct depthwise_conv_2d_VARIANT_params *p,
                                            const struct depthwise_conv_2d_VARIANT_tables *q,
                                            const struct depthwise_conv_2d_VARIANT_taps *parts, int32_t count,
                                            int8_t *out)
{
    const int32_t multiplier = p->depth_multiplier;
    const int32_t wide = p->kernel_width;
    const int32_t size = p->kernel_height * wide;
    const int8_t *weights = q->weights;
    int32_t k = 0;
    if ((multiplier & 3) != 0) {
        for (; k < p->in_channels * multiplier; k += 4) {
            depthwise_conv_2d_VARIANT_few(p, q, parts, count, k, least_of(p->in_channels * multiplier - k, 4), out);
        }
        return;
    }
    for (int32_t c = 0; c < p->in_channels; c++) {
        for (int32_t blocks = multiplier / 4; blocks > 0; blocks--) {
            int32x4_t sums = vldrwq_s32(q->bias + k);
            for (int32_t part = 0; part < count; part++) {
                sums = depthwise_conv_2d_VARIANT_part(&parts[part], wide, c, 1, weights, sums);
            }
            rescaled_VARIANT_four(sums, q->multiplier + k, q->shift + k, p->out_zero, vdupq_n_s32(p->least),
                                  vdupq_n_s32(p->most), out + k);
            weights += 4 * size;
            k += 4;
        }
    }
}
#else
#include "depthwise_place.part"
#endif

#include "depthwise_rows.part"
