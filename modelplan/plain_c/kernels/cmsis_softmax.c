struct cmsis_softmax_VARIANT_params {
#include "library_softmax_fields.part"
};

static void cmsis_softmax_VARIANT(const struct cmsis_softmax_VARIANT_params *p, const int8_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, int8_t *out)
{
    arm_softmax_s8(in, out_rows * p->lines, p->channels, p->multiplier, p->shift, p->least, out);
}
