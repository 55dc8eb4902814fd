/* The library's header of what its convolutions are made of converts integers without saying so. */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#include "arm_nnsupportfunctions.h"
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

struct cmsis_columns_VARIANT_params {
#include "convolution_fields.part"
    int32_t dilation_height;
    int32_t dilation_width;
    int32_t pad_left; /* as many columns as are left out are taken off */
#include "range_fields.part"
};

struct cmsis_columns_VARIANT_tables {
    const int8_t *weights; /* [out_channels, kernel_height, kernel_width, in_channels] */
#include "library_scales.part"
};

/* Copies what the window reads whose first tap is at this row and column; taps beside the map are its zero point. */
static void cmsis_columns_VARIANT_window(const struct cmsis_columns_VARIANT_params *p, const int8_t *in, int32_t rows,
                                         int32_t top, int32_t left, int8_t *to)
{
    const int32_t depth = p->in_channels;
    const int whole = p->dilation_width == 1 && left >= 0 && left + p->kernel_width <= p->in_width;
    for (int32_t i = 0; i < p->kernel_height; i++) {
        const int32_t y = top + i * p->dilation_height;
        if (whole && y >= 0 && y < rows) {
            memcpy(to, in + (y * p->in_width + left) * depth, (size_t)(p->kernel_width * depth));
            to += p->kernel_width * depth;
            continue;
        }
        for (int32_t k = 0; k < p->kernel_width; k++) {
            const int32_t x = left + k * p->dilation_width;
            if (y >= 0 && y < rows && x >= 0 && x < p->in_width) {
                memcpy(to, in + (y * p->in_width + x) * depth, (size_t)depth);
            } else {
                memset(to, p->in_zero, (size_t)depth);
            }
            to += depth;
        }
    }
}

/* Computes pixels whose windows lie in `columns`, `pitch` bytes apart. */
static void cmsis_columns_VARIANT_product(const struct cmsis_columns_VARIANT_params *p,
                                          const struct cmsis_columns_VARIANT_tables *q, const int8_t *columns,
                                          int32_t pixels, int32_t pitch, int8_t *out)
{
    const int32_t taps = p->kernel_height * p->kernel_width * p->in_channels;
    (void)arm_nn_mat_mult_nt_t_s8(columns, q->weights, q->bias, out, q->multiplier, q->shift, pixels, p->out_channels,
                                  taps, -p->in_zero, p->out_zero, p->least, p->most, p->out_channels, pitch);
}

#if !defined(ARM_MATH_MVEI)
static void cmsis_columns_VARIANT_widen(const int8_t *in, int16_t *out, int32_t n, int32_t offset)
{
#if defined(ARM_MATH_DSP)
    arm_s8_to_s16_unordered_with_offset(in, out, n, (int16_t)offset);
#else
    arm_q7_to_q15_with_offset(in, out, n, (int16_t)offset);
#endif
}
#endif

/* What arm_convolve_s8 does, for some columns of a row too: four pixels at a time with Helium, else two. */
static void cmsis_columns_VARIANT(const struct cmsis_columns_VARIANT_params *p,
                                  const struct cmsis_columns_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, int8_t *out, void *scratch)
{
    const int32_t taps = p->kernel_height * p->kernel_width * p->in_channels;
    const int32_t pitch = (taps + 3) / 4 * 4;
#if defined(ARM_MATH_MVEI)
    int8_t *const columns = (int8_t *)scratch;
#else
    int16_t *const wide = (int16_t *)scratch;
    int8_t *const columns = (int8_t *)scratch + 2 * pitch; /* each is widened before the next one is copied */
#endif
    int32_t waiting = 0;
    for (int32_t y = 0; y < out_rows; y++) {
        for (int32_t x = 0; x < p->out_width; x++) {
            int8_t *const column = columns + waiting * pitch;
            cmsis_columns_VARIANT_window(p, in, rows, y * p->stride_height - above, x * p->stride_width - p->pad_left,
                                         column);
            waiting++;
#if defined(ARM_MATH_MVEI)
            if (waiting == 4) {
                cmsis_columns_VARIANT_product(p, q, columns, waiting, pitch, out);
                out += waiting * p->out_channels;
                waiting = 0;
            }
#else
            cmsis_columns_VARIANT_widen(column, wide + (waiting - 1) * pitch, taps, -p->in_zero);
            if (waiting == 2) {
                out = arm_nn_mat_mult_kernel_s8_s16(q->weights, wide, (uint16_t)p->out_channels, q->shift,
                                                    q->multiplier, p->out_zero, (int16_t)p->least, (int16_t)p->most,
                                                    taps, pitch, q->bias, out);
                waiting = 0;
            }
#endif
        }
    }
    if (waiting > 0) {
        cmsis_columns_VARIANT_product(p, q, columns, waiting, pitch, out);
    }
}
