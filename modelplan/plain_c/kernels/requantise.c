/* x * multiplier * 2^(shift - 31), rounded after the product and after the shift: halves away from zero. */
static int32_t requantise(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t up = shift > 0 ? shift : 0;
    const int32_t down = up - shift;
    const int64_t product = (int64_t)(int32_t)((uint32_t)x << up) * multiplier;
    const int32_t high = (int32_t)((product + ((int64_t)1 << 30)) >> 31);
    return down == 0 ? high : (((high + (high >> 31)) >> (down - 1)) + 1) >> 1;
}
