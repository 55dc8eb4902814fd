/* 1 / (1 + exp(-x)), or tanh, with 15 bits behind the point, between the values of a table. */
static int16_t interpolated(const uint16_t *values, int32_t tangent, int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t round = shift > 0 ? (int32_t)1 << (shift - 1) : 0;
    const int32_t place = (x * multiplier + round) >> shift;
    const int32_t size = place < 0 ? -place : place;
    const int32_t bits = tangent != 0 ? 8 : 9;
    const int32_t step = size >> bits;
    int32_t result = tangent != 0 ? 0xFFFF << 8 : 0x7FFF << 10;
    if (step < 255) {
        const int32_t first = values[step];
        result = first * ((int32_t)1 << bits) + (size & (((int32_t)1 << bits) - 1)) * (values[step + 1] - first);
    }
    if (tangent != 0) {
        result = place >= 0 ? result - (1 << 23) + (1 << 7) : (1 << 23) - result + (1 << 7) - 1;
        return (int16_t)(result >> 8);
    }
    result = place >= 0 ? result + (1 << 9) : (1 << 25) - result + (1 << 9) - 1;
    return (int16_t)(result >> 10);
}
