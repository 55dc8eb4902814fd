/* The largest, or the least, elements over two blocks of axes. */
struct extreme_apart_VARIANT_params {
#include "apart_fields.part"
    int32_t least; /* 1: the least */
};

static void extreme_apart_VARIANT(const struct extreme_apart_VARIANT_params *p, const element_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, element_t *out)
#include "apart_loops.part"
        element_t best = p->least != 0 ? ELEMENT_MAX : ELEMENT_MIN;
        for (int32_t k = 0; k < p->reduced * p->again; k++) {
            const element_t here = from[k / p->again * jump + k % p->again * p->inner];
            best = (p->least != 0 ? here < best : here > best) ? here : best;
        }
        out[line] = best;
    }
}
