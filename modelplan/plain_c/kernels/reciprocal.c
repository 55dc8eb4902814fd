/* uses: high_product */
/* 1 / x, where x > 0 has so many integer bits; the result lies between 1/2 and 1 and is to be divided by 2^*bits. */
static int32_t reciprocal(int32_t x, int32_t integer_bits, int32_t *bits)
{
    int32_t zeros = 0;
    uint32_t value = (uint32_t)x;
    while ((value & 0x80000000u) == 0u) {
        value <<= 1;
        zeros++;
    }
    *bits = integer_bits - zeros;
    /* Newton's division by half of the value: numbers with 2 integer bits. */
    const int32_t half = (int32_t)(value >> 1);
    int32_t quotient = 1515870810 + high_product(half, -1010580540);
    for (int i = 0; i < 3; i++) {
        const int32_t off = (1 << 29) - high_product(half, quotient);
        const int32_t step = high_product(quotient, off);
        quotient += step * 4;
    }
    return quotient > 0x3FFFFFFF ? 0x7FFFFFFF : quotient * 2;
}
