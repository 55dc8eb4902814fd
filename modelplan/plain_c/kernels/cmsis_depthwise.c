struct cmsis_depthwise_VARIANT_params {
#include "depthwise_fields.part"
#include "dilation_fields.part"
#include "range_fields.part"
};

struct cmsis_depthwise_VARIANT_tables {
    const int8_t *weights; /* [kernel_height, kernel_width, in_channels * depth_multiplier] */
#include "library_scales.part"
};

static void cmsis_depthwise_VARIANT(const struct cmsis_depthwise_VARIANT_params *p,
                                    const struct cmsis_depthwise_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                    int32_t above, int32_t out_rows, int8_t *out, void *scratch)
{
    const cmsis_nn_context context = {scratch, 0};
    const cmsis_nn_dw_conv_params window = {-p->in_zero, p->out_zero, p->depth_multiplier,
                                            {p->stride_width, p->stride_height}, {p->pad_left, above},
                                            {p->dilation_width, p->dilation_height}, {p->least, p->most}};
    const cmsis_nn_per_channel_quant_params scales = {(int32_t *)q->multiplier, (int32_t *)q->shift};
    const int32_t channels = p->in_channels * p->depth_multiplier;
    const cmsis_nn_dims in_dims = {1, rows, p->in_width, p->in_channels};
    const cmsis_nn_dims filter = {1, p->kernel_height, p->kernel_width, channels};
    const cmsis_nn_dims bias = {1, 1, 1, channels};
    const cmsis_nn_dims out_dims = {1, out_rows, p->out_width, channels};
    (void)FUNCTION(&context, &window, &scales, &in_dims, in, &filter, q->weights, &bias, q->bias,
                   &out_dims, out);
}
