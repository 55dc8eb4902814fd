/* uses: clamp, requantise */
/* Means, or sums, over two blocks of axes. */
struct mean_apart_VARIANT_params {
#include "apart_fields.part"
    int32_t in_zero;
    int32_t out_zero;
    int32_t multiplier; /* over the number of elements */
    int32_t shift;
};

static void mean_apart_VARIANT(const struct mean_apart_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                               int32_t out_rows, element_t *out)
#include "apart_loops.part"
        int32_t sum = 0;
        for (int32_t k = 0; k < p->reduced * p->again; k++) {
            sum += from[k / p->again * jump + k % p->again * p->inner] - p->in_zero;
        }
        sum = requantise(sum, p->multiplier, p->shift);
        out[line] = (element_t)clamp(sum + p->out_zero, ELEMENT_MIN, ELEMENT_MAX);
    }
}
