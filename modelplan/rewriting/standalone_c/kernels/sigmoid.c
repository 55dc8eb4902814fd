/* 1 / (1 + exp(-x)), or tanh, of 16-bit numbers, between the values of a table. */
struct sigmoid_VARIANT_params {
    const uint16_t *values;
    int32_t tangent; /* 1: tanh */
    int32_t multiplier;
    int32_t shift;
    int32_t elements; /* of a row */
};

static int16_t sigmoid_VARIANT_of(const struct sigmoid_VARIANT_params *p, int32_t x)
{
    const int32_t round = p->shift > 0 ? (int32_t)1 << (p->shift - 1) : 0;
    const int32_t place = (x * p->multiplier + round) >> p->shift;
    const int32_t size = place < 0 ? -place : place;
    const int32_t bits = p->tangent != 0 ? 8 : 9;
    const int32_t step = size >> bits;
    int32_t result = p->tangent != 0 ? 0xFFFF << 8 : 0x7FFF << 10;
    if (step < 255) {
        const int32_t first = p->values[step];
        result = first * ((int32_t)1 << bits) + (size & (((int32_t)1 << bits) - 1)) * (p->values[step + 1] - first);
    }
    if (p->tangent != 0) {
        result = place >= 0 ? result - (1 << 23) + (1 << 7) : (1 << 23) - result + (1 << 7) - 1;
        return (int16_t)(result >> 8);
    }
    result = place >= 0 ? result + (1 << 9) : (1 << 25) - result + (1 << 9) - 1;
    return (int16_t)(result >> 10);
}

static void sigmoid_VARIANT(const struct sigmoid_VARIANT_params *p, const int16_t *in, int32_t rows, int32_t above,
                            int32_t out_rows, int16_t *out)
{
    (void)rows;
    (void)above;
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        out[i] = sigmoid_VARIANT_of(p, in[i]);
    }
}
