struct cmsis_connected_VARIANT_params {
#include "connected_fields.part"
};

struct cmsis_connected_VARIANT_tables {
#include "connected_tables.part"
};

static void cmsis_connected_VARIANT(const struct cmsis_connected_VARIANT_params *p,
                                    const struct cmsis_connected_VARIANT_tables *q, const int8_t *in, int32_t rows,
                                    int32_t above, int32_t out_rows, int8_t *out)
{
    const cmsis_nn_context context = {(void *)q->bias, 0}; /* Helium's kernel begins its sums with these */
    const cmsis_nn_fc_params range = {0, 0, p->out_zero, {p->least, p->most}};
    const cmsis_nn_per_tensor_quant_params scales = {q->multiplier[0], q->shift[0]};
#include "connected_dims.part"
    (void)arm_fully_connected_s8(&context, &range, &scales, &in_dims, in, &filter, q->weights, &bias, q->bias,
                                 &out_dims, out);
}
