/* uses: clamp, requantise */
/* Sums, or differences, of quantised numbers. */
struct add_VARIANT_params {
#include "pair_fields.part"
    int32_t a_zero;
    int32_t b_zero;
    int32_t out_zero;
    int32_t left_shift;
    int32_t a_multiplier;
    int32_t a_shift;
    int32_t b_multiplier;
    int32_t b_shift;
    int32_t b_sign; /* -1: b is subtracted */
    int32_t out_multiplier;
    int32_t out_shift;
    int32_t least;
    int32_t most;
};

static void add_VARIANT(const struct add_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                        int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
                const int32_t unit = (int32_t)1 << p->left_shift;
                const int32_t first = requantise((*i - p->a_zero) * unit, p->a_multiplier, p->a_shift);
                const int32_t second = requantise((*j - p->b_zero) * unit, p->b_multiplier, p->b_shift);
                const int32_t sum = requantise(first + p->b_sign * second, p->out_multiplier, p->out_shift);
                *out = (element_t)clamp(sum + p->out_zero, p->least, p->most);
#include "pair_ends.part"
