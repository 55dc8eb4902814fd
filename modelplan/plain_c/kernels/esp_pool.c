struct esp_pool_VARIANT_params {
#include "pool_fields.part"
    int32_t least;
    int32_t most;
};

static void esp_pool_VARIANT(const struct esp_pool_VARIANT_params *p, const int8_t *in, int32_t rows, int32_t above,
                             int32_t out_rows, int8_t *out)
{
    FUNCTION(in, (uint16_t)p->in_width, (uint16_t)rows, out, (uint16_t)p->out_width, (uint16_t)out_rows,
             (uint16_t)p->stride_width, (uint16_t)p->stride_height, (uint16_t)p->kernel_width,
             (uint16_t)p->kernel_height, (uint16_t)p->pad_left, (uint16_t)above, p->least, p->most,
             (uint16_t)p->channels);
}
