struct esp_depthwise_VARIANT_params {
#include "depthwise_fields.part"
    int32_t pad_left;
#include "range_fields.part"
};

struct esp_depthwise_VARIANT_tables {
    const int8_t *weights; /* [kernel_height, kernel_width, in_channels * depth_multiplier] */
#include "library_scales.part"
};

static void esp_depthwise_VARIANT(const struct esp_depthwise_VARIANT_params *p,
                                  const struct esp_depthwise_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, int8_t *out)
{
    const data_dims_t in_dims = {p->in_width, rows, p->in_channels, 1};
    const data_dims_t filter = {p->kernel_width, p->kernel_height, 0, 0};
    const data_dims_t out_dims = {p->out_width, out_rows, p->in_channels * p->depth_multiplier, 1};
    const dw_conv_params_t window = {-p->in_zero, p->out_zero, p->depth_multiplier,
                                     {p->stride_width, p->stride_height}, {p->pad_left, above}, {1, 1},
                                     {p->least, p->most}};
    const quant_data_t scales = {(int32_t *)q->shift, (int32_t *)q->multiplier};
    esp_nn_depthwise_conv_s8_opt(&in_dims, in, &filter, q->weights, q->bias, &out_dims, out, &window, &scales);
}
