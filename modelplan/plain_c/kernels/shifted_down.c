/* x / 2^exponent, rounded to nearest, halves away from zero. */
static int32_t shifted_down(int32_t x, int32_t exponent)
{
    const int32_t mask = (int32_t)(((uint32_t)1 << exponent) - 1u);
    const int32_t half = (mask >> 1) + (x < 0 ? 1 : 0);
    return (x >> exponent) + ((x & mask) > half ? 1 : 0);
}
