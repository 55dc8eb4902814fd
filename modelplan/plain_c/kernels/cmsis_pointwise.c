struct cmsis_pointwise_VARIANT_params {
#include "pointwise_fields.part"
};

struct cmsis_pointwise_VARIANT_tables {
#include "pointwise_tables.part"
};

/* A convolution with windows of one pixel. */
static void cmsis_pointwise_VARIANT(const struct cmsis_pointwise_VARIANT_params *p,
                                    const struct cmsis_pointwise_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                    int32_t above, int32_t out_rows, int8_t *out)
{
    const cmsis_nn_context context = {NULL, 0};
    const cmsis_nn_conv_params window = {-p->in_zero, p->out_zero, {p->stride_width, p->stride_height}, {0, above},
                                         {1, 1}, {p->least, p->most}};
    const cmsis_nn_per_channel_quant_params scales = {(int32_t *)q->multiplier, (int32_t *)q->shift};
    const int32_t width = p->stride_width == 1 ? p->out_width : p->in_width;
    const cmsis_nn_dims in_dims = {1, rows, width, p->in_channels};
    const cmsis_nn_dims filter = {p->out_channels, 1, 1, p->in_channels};
    const cmsis_nn_dims bias = {1, 1, 1, p->out_channels};
    const cmsis_nn_dims out_dims = {1, out_rows, p->out_width, p->out_channels};
    (void)arm_convolve_wrapper_s8(&context, &window, &scales, &in_dims, in - p->pad_left * p->in_channels, &filter,
                                  q->weights, &bias, q->bias, &out_dims, out);
}
