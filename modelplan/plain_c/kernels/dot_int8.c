/* uses: several */
#if defined(IN_PAIRS)
/* Elements 0 and 2 of four as numbers of 16 bits, and elements 1 and 3. */
WITHIN void dot_VARIANT_pairs(const int8_t *in, int32_t *even, int32_t *odd)
{
    __asm__("ldr %1, %2\n\t"
            "sxtb16 %0, %1\n\t"
            "sxtb16 %1, %1, ror #8"
            : "=&r"(*even), "=&r"(*odd)
            : "m"(FOUR_BYTES(in)));
}

/* A sum and the products of such pairs with four weights. */
WITHIN int32_t dot_VARIANT_four(int32_t sum, int32_t even, int32_t odd, const int8_t *weights)
{
    int32_t first;
    int32_t second;
    __asm__("ldr %1, %5\n\t"
            "sxtb16 %2, %1\n\t"
            "smlad %0, %3, %2, %0\n\t"
            "sxtb16 %1, %1, ror #8\n\t"
            "smlad %0, %4, %1, %0"
            : "+r"(sum), "=&r"(first), "=&r"(second)
            : "r"(even), "r"(odd), "m"(FOUR_BYTES(weights)));
    return sum;
}
#endif

/* Adds the products of n elements with the weights of `channels` channels, 4 at most, to their sums. */
/* There are always four sums; those of channels that are not there become any number. */
#if defined(__ARM_FEATURE_MVE) || defined(IN_PAIRS)
APART void dot_VARIANT(const int8_t *in, const int8_t *weights, int32_t pitch, int32_t n, int32_t channels, int32_t *sums)
{
    const int32_t second = channels > 1 ? pitch : 0;
    const int32_t third = channels > 2 ? 2 * pitch : 0;
    const int32_t fourth = channels > 3 ? 3 * pitch : 0;
    int32_t a = sums[0];
    int32_t b = sums[1];
    int32_t c = sums[2];
    int32_t d = sums[3];
    const int8_t *const end = in + n;
#if defined(__ARM_FEATURE_MVE)
    for (; end - in >= 16; in += 16) {
        const int8x16_t x = vldrbq_s8(in);
        a = vmladavaq_s8(a, x, vldrbq_s8(weights));
        b = vmladavaq_s8(b, x, vldrbq_s8(weights + second));
        c = vmladavaq_s8(c, x, vldrbq_s8(weights + third));
        d = vmladavaq_s8(d, x, vldrbq_s8(weights + fourth));
        weights += 16;
    }
    if (in < end) {
        const mve_pred16_t rest = vctp8q((uint32_t)(end - in));
        const int8x16_t x = vldrbq_z_s8(in, rest);
        a = vmladavaq_s8(a, x, vldrbq_z_s8(weights, rest));
        b = vmladavaq_s8(b, x, vldrbq_z_s8(weights + second, rest));
        c = vmladavaq_s8(c, x, vldrbq_z_s8(weights + third, rest));
        d = vmladavaq_s8(d, x, vldrbq_z_s8(weights + fourth, rest));
    }
#else
    const int8_t *const fours = in + (n & ~3);
    while (in < fours) {
        int32_t even;
        int32_t odd;
        dot_VARIANT_pairs(in, &even, &odd);
        a = dot_VARIANT_four(a, even, odd, weights);
        b = dot_VARIANT_four(b, even, odd, weights + second);
        c = dot_VARIANT_four(c, even, odd, weights + third);
        d = dot_VARIANT_four(d, even, odd, weights + fourth);
        in += 4;
        weights += 4;
    }
    while (in < end) {
        const int32_t x = *in;
        a += x * weights[0];
        b += x * weights[second];
        c += x * weights[third];
        d += x * weights[fourth];
        in++;
        weights++;
    }
#endif
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}
#elif defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
/* Two channels: for four the core has too few registers. */
APART void dot_VARIANT_two(const int8_t *in, const int8_t *weights, int32_t pitch, int32_t n, int32_t *sums)
{
    int32_t a = sums[0];
    int32_t b = sums[1];
    for (int32_t i = 0; i < n; i++) {
        const int32_t x = in[i];
        a += x * weights[i];
        b += x * weights[pitch + i];
    }
    sums[0] = a;
    sums[1] = b;
}

APART void dot_VARIANT(const int8_t *in, const int8_t *weights, int32_t pitch, int32_t n, int32_t channels, int32_t *sums)
{
    dot_VARIANT_two(in, weights, channels > 1 ? pitch : 0, n, sums);
    if (channels > 2) {
        dot_VARIANT_two(in, weights + 2 * pitch, channels > 3 ? pitch : 0, n, sums + 2);
    }
}
#else
APART void dot_VARIANT(const int8_t *in, const int8_t *weights, int32_t pitch, int32_t n, int32_t channels, int32_t *sums)
{
    const int8_t *w1 = weights + (channels > 1 ? pitch : 0);
    const int8_t *w2 = weights + (channels > 2 ? 2 * pitch : 0);
    const int8_t *w3 = weights + (channels > 3 ? 3 * pitch : 0);
    int32_t a = sums[0];
    int32_t b = sums[1];
    int32_t c = sums[2];
    int32_t d = sums[3];
    for (; n > 0; n--) {
        const int32_t x = *in++;
        a += x * *weights++;
        b += x * *w1++;
        c += x * *w2++;
        d += x * *w3++;
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}
#endif
