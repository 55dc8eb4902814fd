struct esp_connected_VARIANT_params {
#include "connected_fields.part"
};

struct esp_connected_VARIANT_tables {
#include "connected_tables.part"
};

static void esp_connected_VARIANT(const struct esp_connected_VARIANT_params *p,
                                  const struct esp_connected_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, int8_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        FUNCTION(in + line * p->in_channels, 0, (uint16_t)p->in_channels, q->weights, 0, q->bias,
                 out + line * p->out_channels, (uint16_t)p->out_channels, p->out_zero, SHIFT, MULTIPLIER, p->least,
                 p->most);
    }
}
