/* uses: high_product, shifted_down */
/* x * multiplier * 2^(shift - 31), rounded after each of the two steps. */
static int32_t requantise(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t up = shift > 0 ? shift : 0;
    return shifted_down(high_product((int32_t)((uint32_t)x << up), multiplier), up - shift);
}
