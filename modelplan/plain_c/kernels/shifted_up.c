/* x * 2^exponent, saturated; x is not below 0. */
static int32_t shifted_up(int32_t x, int32_t exponent)
{
    return x > (INT32_MAX >> exponent) ? INT32_MAX : x * ((int32_t)1 << exponent);
}
