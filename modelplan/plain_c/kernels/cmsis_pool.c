struct cmsis_pool_VARIANT_params {
#include "pool_fields.part"
    int32_t least;
    int32_t most;
};

static void cmsis_pool_VARIANT(const struct cmsis_pool_VARIANT_params *p, const int8_t *in,
        int32_t rows, int32_t above, int32_t out_rows, int8_t *out, void *scratch)
{
    const cmsis_nn_context context = {scratch, 0};
    const cmsis_nn_pool_params window = {{p->stride_width, p->stride_height}, {p->pad_left, above},
                                         {p->least, p->most}};
    const cmsis_nn_dims in_dims = {1, rows, p->in_width, p->channels};
    const cmsis_nn_dims filter = {1, p->kernel_height, p->kernel_width, 1};
    const cmsis_nn_dims out_dims = {1, out_rows, p->out_width, p->channels};
    (void)FUNCTION(&context, &window, &in_dims, in, &filter, &out_dims, out);
}
