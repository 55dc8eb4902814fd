struct esp_pointwise_VARIANT_params {
#include "pointwise_fields.part"
};

struct esp_pointwise_VARIANT_tables {
#include "pointwise_tables.part"
};

/* A convolution with windows of one pixel. */
static void esp_pointwise_VARIANT(const struct esp_pointwise_VARIANT_params *p,
                                  const struct esp_pointwise_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, int8_t *out)
{
    const data_dims_t in_dims = {p->in_width, rows, p->in_channels, 1};
    const data_dims_t filter = {1, 1, p->in_channels, 0};
    const data_dims_t out_dims = {p->out_width, out_rows, p->out_channels, 1};
    const conv_params_t window = {-p->in_zero, p->out_zero, {p->stride_width, p->stride_height}, {0, above},
                                  {1, 1}, {p->least, p->most}};
    const quant_data_t scales = {(int32_t *)q->shift, (int32_t *)q->multiplier};
    esp_nn_conv_s8_opt(&in_dims, in - p->pad_left * p->in_channels, &filter, q->weights, q->bias, &out_dims, out,
                       &window, &scales);
}
