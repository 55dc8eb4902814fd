/* uses: clamp, requantise, reciprocal */
/* Quotients of quantised numbers; that by 0 is the largest or the least. */
struct divide_VARIANT_params {
#include "pair_fields.part"
#include "product_fields.part"
    int32_t least;
    int32_t most;
};

static int32_t divide_VARIANT_of(const struct divide_VARIANT_params *p, int32_t a, int32_t b)
{
    const int32_t over = b < 0 ? -a : a;
    const uint32_t size = (uint32_t)(over < 0 ? ~over : over);
    int32_t room = 0;
    int32_t bits;
    if (b == 0) {
        return a < 0 ? p->least : p->most;
    }
    while (room < 31 && ((size << room) & 0x40000000u) == 0u) {
        room++;
    }
    const int32_t inverse = reciprocal(b < 0 ? -b : b, 31, &bits);
    const int32_t quotient = requantise(over, inverse, room);
    if (p->shift - bits - room < -31) {
        return clamp(p->out_zero, p->least, p->most);
    }
    return clamp(requantise(quotient, p->multiplier, p->shift - bits - room) + p->out_zero, p->least, p->most);
}

static void divide_VARIANT(const struct divide_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                           int32_t above, int32_t out_rows, element_t *out)
#include "pair_loops.part"
                *out = (element_t)divide_VARIANT_of(p, *i - p->a_zero, *j - p->b_zero);
#include "pair_ends.part"
