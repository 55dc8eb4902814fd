/* x * multiplier * 2^(shift - 31) for a sum of 48 bits: the multiplier has 16 bits, rounding is done at the end. */
static int32_t requantise_wide(int64_t x, int32_t multiplier, int32_t shift)
{
    const int32_t reduced = multiplier < 0x7FFF0000 ? (multiplier + (1 << 15)) >> 16 : 0x7FFF;
    return (int32_t)((x * reduced + ((int64_t)1 << (14 - shift))) >> (15 - shift));
}
