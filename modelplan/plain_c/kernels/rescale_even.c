/* uses: inlining */
/* x / 2^bits, halves to even numbers. */
static uint64_t halved_even(uint64_t x, int32_t bits)
{
    if (bits <= 0) {
        return x;
    }
    return bits > 63 ? 0u : (x + (((uint64_t)1 << (bits - 1)) - 1u) + ((x >> bits) & 1u)) >> bits;
}

/* How many bits a number has. */
static int32_t bits_of(uint64_t x)
{
    int32_t bits = 0;
    for (int32_t step = 32; step > 0; step /= 2) {
        if (x >> step != 0u) {
            x >>= step;
            bits += step;
        }
    }
    return bits + (x != 0u ? 1 : 0);
}

/* The whole number that is nearest to x * multiplier * 2^shift as float32 computes it, halves to even numbers: x and */
/* the product are rounded to 24 bits. The multiplier has 24 bits or is 0. */
WITHIN int32_t rescale_even(int32_t x, int32_t multiplier, int32_t shift)
{
    const uint32_t size = x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
    const int32_t over = size > 0xFFFFFFu ? bits_of(size) - 24 : 0;
    const uint64_t product = halved_even(size, over) * (uint32_t)multiplier;
    const int32_t down = -(shift + over);
    if (down >= 16 && down < 80) {
        /* Of a number below 256 the product, rounded to 24 bits, is less than 2^-16 off: where it is farther from a */
        /* half the nearest number is that of the product itself. */
        const uint64_t fixed = product >> (down - 16);
        if (fixed < 0x1000000u && (((uint32_t)fixed - 0x7FFFu) & 0xFFFFu) > 1u) {
            const int32_t near = (int32_t)(((uint32_t)fixed + 0x8000u) >> 16);
            return x < 0 ? -near : near;
        }
    }
    const int32_t rest = bits_of(product) - 24;
    const uint64_t single = halved_even(product, rest);
    const int32_t exponent = (rest > 0 ? rest : 0) - down;
    const uint64_t whole = exponent < 0 ? halved_even(single, -exponent) : single << (exponent < 7 ? exponent : 7);
    return x < 0 ? -(int32_t)whole : (int32_t)whole;
}
