/* Functions of one number that are exact. */
struct float_exact_VARIANT_params {
    int32_t operation; /* 0 |x|, 1 -x, 2 x * x, 3 rounded down, 4 rounded up, 5 to the nearest, of two to the even one */
    int32_t elements;  /* of a row */
};

static float float_exact_VARIANT_nearest(float x)
{
    const float low = floorf(x);
    const float rest = x - low;
    return rest < 0.5f || (rest == 0.5f && fmodf(low, 2.0f) == 0.0f) ? low : low + 1.0f;
}

static float float_exact_VARIANT_of(int32_t operation, float x)
{
    switch (operation) {
    case 0:
        return fabsf(x);
    case 1:
        return -x;
    case 2:
        return x * x;
    case 3:
        return floorf(x);
    case 4:
        return ceilf(x);
    default:
        return float_exact_VARIANT_nearest(x);
    }
}

static void float_exact_VARIANT(const struct float_exact_VARIANT_params *p, const element_t *in, int32_t rows,
                                int32_t above, int32_t out_rows, element_t *out)
{
    (void)rows;
    (void)above;
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        out[i] = float_exact_VARIANT_of(p->operation, in[i]);
    }
}
