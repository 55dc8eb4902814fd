/* uses: several, clamp, requantise */
/* Sums, or differences, of quantised numbers. */
struct add_VARIANT_params {
#include "pair_fields.part"
#include "add_fields.part"
};

#if defined(__ARM_FEATURE_MVE)
/* What `requantise` does, of four numbers. */
WITHIN int32x4_t add_VARIANT_requantised(int32x4_t x, int32_t multiplier, int32_t shift)
{
    const int32_t up = shift > 0 ? shift : 0;
    const int32x4_t high = vqrdmulhq_n_s32(vshlq_r_s32(x, up), multiplier);
    const int32x4_t away = vmlaq_n_s32(high, vshrq_n_s32(high, 31), shift < 0 ? 1 : 0); /* halves go away from zero */
    return vrshlq_n_s32(away, shift - up);
}

/* The sums of n elements that lie side by side. */
static void add_VARIANT_many(const struct add_VARIANT_params *p, const int8_t *a, const int8_t *b, int32_t n,
                             int8_t *out)
{
    for (; n > 0; n -= 4) {
        const mve_pred16_t there = vctp32q((uint32_t)n);
        const int32x4_t x = vshlq_r_s32(vsubq_n_s32(vldrbq_z_s32(a, there), p->a_zero), p->left_shift);
        const int32x4_t y = vshlq_r_s32(vsubq_n_s32(vldrbq_z_s32(b, there), p->b_zero), p->left_shift);
        const int32x4_t first = add_VARIANT_requantised(x, p->a_multiplier, p->a_shift);
        const int32x4_t second = add_VARIANT_requantised(y, p->b_multiplier, p->b_shift);
        const int32x4_t both = vmlaq_n_s32(first, second, p->b_sign);
        const int32x4_t sum = add_VARIANT_requantised(both, p->out_multiplier, p->out_shift);
        const int32x4_t placed = vmaxq_s32(vaddq_n_s32(sum, p->out_zero), vdupq_n_s32(p->least));
        vstrbq_p_s32(out, vminq_s32(placed, vdupq_n_s32(p->most)), there);
        a += 4;
        b += 4;
        out += 4;
    }
}
#endif

static void add_VARIANT(const struct add_VARIANT_params *p, const element_t *a, const element_t *b, int32_t rows,
                        int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t y = 0; y < out_rows; y++) {
        for (int32_t x = 0; x < p->width; x++) {
            const element_t *i = a + y * p->a_row + x * p->a_column;
            const element_t *j = b + y * p->b_row + x * p->b_column;
#if defined(__ARM_FEATURE_MVE)
            if (p->a_channel == 1 && p->b_channel == 1) {
                add_VARIANT_many(p, i, j, p->channels, out);
                out += p->channels;
                continue;
            }
#endif
            for (int32_t c = 0; c < p->channels; c++) {
#include "add_each.part"
#include "pair_ends.part"
