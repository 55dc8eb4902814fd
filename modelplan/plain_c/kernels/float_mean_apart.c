/* Means, or sums, over two blocks of axes. */
struct float_mean_apart_VARIANT_params {
#include "apart_fields.part"
    float count; /* by which the sum is divided */
};

static void float_mean_apart_VARIANT(const struct float_mean_apart_VARIANT_params *p, const element_t *in, int32_t rows,
                                     int32_t above, int32_t out_rows, element_t *out)
#include "apart_loops.part"
        float sum = 0.0f;
        for (int32_t k = 0; k < p->reduced * p->again; k++) {
            sum += from[k / p->again * jump + k % p->again * p->inner];
        }
        out[line] = sum / p->count;
    }
}
