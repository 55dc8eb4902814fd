/* uses: window, least_of, dot_VARIANT, constant_dot_VARIANT, rescaled_VARIANT */
struct conv_2d_VARIANT_params {
#include "convolution_fields.part"
#include "dilation_fields.part"
    int32_t groups;
#include "range_fields.part"
};

struct conv_2d_VARIANT_tables {
    const weight_t *weights; /* [out_channels, kernel_height, kernel_width, in_channels / groups] */
#include "folded_scales.part"
};

#include "conv_taps.part"

#if defined(__ARM_FEATURE_MVE)
/* The sums of four channels, and their next weights. */
struct conv_2d_VARIANT_four {
    int32_t a;
    int32_t b;
    int32_t c;
    int32_t d;
    const int8_t *w0;
    const int8_t *w1;
    const int8_t *w2;
    const int8_t *w3;
};

WITHIN void conv_2d_VARIANT_begin(struct conv_2d_VARIANT_four *of, const int8_t *weights, int32_t apart)
{
    of->a = 0;
    of->b = 0;
    of->c = 0;
    of->d = 0;
    of->w0 = weights;
    of->w1 = weights + apart;
    of->w2 = weights + 2 * apart;
    of->w3 = weights + 3 * apart;
}

/* The next 16 weights. */
WITHIN int8x16_t conv_2d_VARIANT_next(const int8_t **weights)
{
    int8x16_t next;
    __asm__("vldrb.8 %q0, [%1], #16" : "=w"(next), "+r"(*weights));
    return next;
}

/* Adds the products of n elements with the next weights; where there is nothing at `in` all are `alike`. */
WITHIN void conv_2d_VARIANT_add(struct conv_2d_VARIANT_four *of, const int8_t *in, int8x16_t alike, int32_t n)
{
    const int32_t rest = n & 15;
    for (int32_t blocks = n / 16; blocks > 0; blocks--) {
        const int8x16_t x = in != NULL ? vldrbq_s8(in) : alike;
        of->a = vmladavaq_s8(of->a, x, conv_2d_VARIANT_next(&of->w0));
        of->b = vmladavaq_s8(of->b, x, conv_2d_VARIANT_next(&of->w1));
        of->c = vmladavaq_s8(of->c, x, conv_2d_VARIANT_next(&of->w2));
        of->d = vmladavaq_s8(of->d, x, conv_2d_VARIANT_next(&of->w3));
        in = in != NULL ? in + 16 : NULL;
    }
    if (rest != 0) {
        const mve_pred16_t there = vctp8q((uint32_t)rest);
        const int8x16_t x = in != NULL ? vldrbq_z_s8(in, there) : alike;
        of->a = vmladavaq_s8(of->a, x, vldrbq_z_s8(of->w0, there));
        of->b = vmladavaq_s8(of->b, x, vldrbq_z_s8(of->w1, there));
        of->c = vmladavaq_s8(of->c, x, vldrbq_z_s8(of->w2, there));
        of->d = vmladavaq_s8(of->d, x, vldrbq_z_s8(of->w3, there));
        of->w0 += rest;
        of->w1 += rest;
        of->w2 += rest;
        of->w3 += rest;
    }
}

/* The sums become elements. */
WITHIN void conv_2d_VARIANT_put(const struct conv_2d_VARIANT_params *p, const struct conv_2d_VARIANT_tables *q,
                                const struct conv_2d_VARIANT_four *of, int32_t c, int32x4_t least, int32x4_t most,
                                int8_t *out)
{
    int32x4_t sums = vdupq_n_s32(of->a);
    sums = vsetq_lane_s32(of->b, sums, 1);
    sums = vsetq_lane_s32(of->c, sums, 2);
    sums = vsetq_lane_s32(of->d, sums, 3);
    rescaled_VARIANT_four(vaddq_s32(sums, vldrwq_s32(q->bias + c)), q->multiplier + c, q->shift + c, p->out_zero, least,
                          most, out + c);
}

/* Channels [c, end), four at a time, at a place whose window is all of `run`: so many lines, in each of which so many */
/* elements lie side by side. */
WITHIN void conv_2d_VARIANT_inside(const struct conv_2d_VARIANT_params *p, const struct conv_2d_VARIANT_tables *q,
                                   const int8_t *run, int32_t lines, int32_t line, int32_t c, int32_t end, int8_t *out)
{
    const int32_t row = p->dilation_height * p->in_width * p->in_channels;
    const int32_t size = lines * line;
    const int32x4_t least = vdupq_n_s32(p->least);
    const int32x4_t most = vdupq_n_s32(p->most);
    const int8_t *w = q->weights + c * size;
    for (; end - c >= 4; c += 4) {
        struct conv_2d_VARIANT_four of;
        const int8_t *in = run;
        conv_2d_VARIANT_begin(&of, w, size);
        for (int32_t y = 0; y < lines; y++) {
            conv_2d_VARIANT_add(&of, in, vdupq_n_s8(0), line);
            in += row;
        }
        conv_2d_VARIANT_put(p, q, &of, c, least, most, out);
        w += 4 * size;
    }
}

/* The same at a place whose taps [taps[0], taps[1]) x [taps[2], taps[3]) lie in the map; those of a line lie side by */
/* side. */
APART void conv_2d_VARIANT_edge(const struct conv_2d_VARIANT_params *p, const struct conv_2d_VARIANT_tables *q,
                                const int8_t *in, const int32_t taps[4], int32_t c, int32_t end, int8_t *out)
{
    const int32_t depth = p->in_channels / p->groups;
    const int32_t line = p->kernel_width * depth;
    const int32_t size = p->kernel_height * line;
    const int32_t row = p->dilation_height * p->in_width * p->in_channels;
    const int8x16_t zero = vdupq_n_s8((int8_t)p->in_zero);
    const int32x4_t least = vdupq_n_s32(p->least);
    const int32x4_t most = vdupq_n_s32(p->most);
    for (; end - c >= 4; c += 4) {
        struct conv_2d_VARIANT_four of;
        conv_2d_VARIANT_begin(&of, q->weights + c * size, size);
        for (int32_t y = 0; y < p->kernel_height; y++) {
            const int inside = y >= taps[0] && y < taps[1];
            const int32_t first = inside ? taps[2] * depth : line;
            const int32_t last = inside ? taps[3] * depth : line;
            conv_2d_VARIANT_add(&of, NULL, zero, first);
            conv_2d_VARIANT_add(&of, in + y * row + first, zero, last - first);
            conv_2d_VARIANT_add(&of, NULL, zero, line - last);
        }
        conv_2d_VARIANT_put(p, q, &of, c, least, most, out);
    }
}

/* All channels of a group at one place. The window's elements are those of `run`, of which `line` lie one behind the */
/* other: all of them, or those of a line of the window. NULL: neither. */
APART void conv_2d_VARIANT_place(const struct conv_2d_VARIANT_params *p, const struct conv_2d_VARIANT_tables *q,
                                 const int8_t *in, int32_t at, const int32_t taps[4], const int8_t *run, int32_t line,
                                 int32_t group, int8_t *out)
{
    const int32_t size = p->kernel_height * p->kernel_width * (p->in_channels / p->groups);
    const int32_t filters = p->out_channels / p->groups;
    const int32_t end = (group + 1) * filters;
    int32_t c = group * filters;
    if (run != NULL && line == size) {
        conv_2d_VARIANT_inside(p, q, run, 1, size, c, end, out);
        c += filters & ~3;
    } else if (run != NULL) {
        conv_2d_VARIANT_inside(p, q, run, p->kernel_height, line, c, end, out);
        c += filters & ~3;
    } else if (p->dilation_width * p->groups == 1) {
        conv_2d_VARIANT_edge(p, q, in + at, taps, c, end, out);
        c += filters & ~3;
    }
    for (; c < end; c += 4) {
        int32_t sums[4] = {0, 0, 0, 0};
        const int32_t channels = least_of(end - c, 4);
        const int8_t *w = q->weights + c * size;
        if (run != NULL) {
            for (int32_t k = 0; k < size; k += line) {
                dot_VARIANT(run, w + k, size, line, channels, sums);
                run += p->dilation_height * p->in_width * p->in_channels;
            }
        } else {
            conv_2d_VARIANT_sums(p, in, at, w, taps, channels, sums);
        }
        rescaled_VARIANT(sums, q->bias + c, q->multiplier + c, q->shift + c, channels, p->out_zero, p->least, p->most,
                         out + c);
    }
}
#else
#include "conv_place.part"
#endif

#include "conv_rows.part"
