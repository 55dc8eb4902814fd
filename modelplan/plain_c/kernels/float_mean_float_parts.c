/* uses: least_of */
/* Means, or sums, over a block of axes, 16 elements at a time: the fewer numbers one sum adds, the fewer bits it loses. */
struct float_mean_float_parts_params {
#include "float_mean_fields.part"
};

static void float_mean_float_parts(const struct float_mean_float_parts_params *p, const float *in, int32_t rows, int32_t above,
                         int32_t out_rows, float *out)
{
    for (int32_t o = 0; o < out_rows * p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            float sum = 0.0f;
            for (int32_t first = 0; first < p->reduced; first += 16) {
                const int32_t end = first + least_of(p->reduced - first, 16);
                float part = 0.0f;
                for (int32_t k = first; k < end; k++) {
                    part += in[k * p->inner + i];
                }
                sum += part;
            }
            *out = sum / p->count;
            out++;
        }
        in += p->reduced * p->inner;
    }
}
