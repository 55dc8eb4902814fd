struct esp_convolve_VARIANT_params {
#include "convolution_fields.part"
    int32_t pad_left;
    int32_t groups;
#include "range_fields.part"
};

struct esp_convolve_VARIANT_tables {
    const int8_t *weights; /* [out_channels, kernel_height, kernel_width, in_channels / groups] */
#include "library_scales.part"
};

static void esp_convolve_VARIANT(const struct esp_convolve_VARIANT_params *p,
                                 const struct esp_convolve_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                 int32_t above, int32_t out_rows, int8_t *out)
{
    const data_dims_t in_dims = {p->in_width, rows, p->in_channels, 1};
    const data_dims_t filter = {p->kernel_width, p->kernel_height, p->in_channels / p->groups, 0};
    const data_dims_t out_dims = {p->out_width, out_rows, p->out_channels, 1};
    const conv_params_t window = {-p->in_zero, p->out_zero, {p->stride_width, p->stride_height},
                                  {p->pad_left, above}, {1, 1}, {p->least, p->most}};
    const quant_data_t scales = {(int32_t *)q->shift, (int32_t *)q->multiplier};
    esp_nn_conv_s8_opt(&in_dims, in, &filter, q->weights, q->bias, &out_dims, out, &window, &scales);
}
