/* What 16 bits of a float stand for. */
static float half_number(uint16_t half)
{
    const uint32_t exponent = (uint32_t)half >> 10 & 31u;
    const uint32_t fraction = (uint32_t)half & 1023u;
    uint32_t bits = ((uint32_t)half & 0x8000u) << 16;
    float number;
    if (exponent == 0u) {
        number = (float)fraction / 16777216.0f;
        return bits != 0u ? -number : number;
    }
    bits |= (exponent == 31u ? 255u : exponent + 112u) << 23 | fraction << 13;
    (void)memcpy(&number, &bits, sizeof number);
    return number;
}
