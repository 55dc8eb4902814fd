struct cmsis_convolve_VARIANT_params {
#include "convolution_fields.part"
#include "dilation_fields.part"
    int32_t groups;
#include "range_fields.part"
};

struct cmsis_convolve_VARIANT_tables {
    const int8_t *weights; /* [out_channels, kernel_height, kernel_width, in_channels / groups] */
#include "library_scales.part"
};

static void cmsis_convolve_VARIANT(const struct cmsis_convolve_VARIANT_params *p,
                                   const struct cmsis_convolve_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                   int32_t above, int32_t out_rows, int8_t *out, void *scratch)
{
    const cmsis_nn_context context = {scratch, 0};
    const cmsis_nn_conv_params window = {-p->in_zero, p->out_zero, {p->stride_width, p->stride_height},
                                         {p->pad_left, above}, {p->dilation_width, p->dilation_height},
                                         {p->least, p->most}};
    const cmsis_nn_per_channel_quant_params scales = {(int32_t *)q->multiplier, (int32_t *)q->shift};
    const int32_t depth = p->in_channels / p->groups;
    const cmsis_nn_dims in_dims = {1, rows, p->in_width, p->in_channels};
    const cmsis_nn_dims filter = {p->out_channels, p->kernel_height, p->kernel_width, depth};
    const cmsis_nn_dims bias = {1, 1, 1, p->out_channels};
    const cmsis_nn_dims out_dims = {1, out_rows, p->out_width, p->out_channels};
    (void)arm_convolve_wrapper_s8(&context, &window, &scales, &in_dims, in, &filter, q->weights, &bias, q->bias,
                                  &out_dims, out);
}
