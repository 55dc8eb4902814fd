/* Functions of one number. */
struct float_unary_VARIANT_params {
    int32_t operation; /* 0 1 / (1 + exp(-x)), 1 tanh, 2 x * relu6(x + 3) / 6, 3 a slope below zero; then limits */
    float slope;
    float least;
    float most;
    int32_t elements; /* of a row */
};

static float float_unary_VARIANT_of(const struct float_unary_VARIANT_params *p, float x)
{
    float y = x;
    switch (p->operation) {
    case 0:
        y = x > 16.619047164916992188f ? 1.0f : x < -9.0f ? expf(x) : 1.0f / (1.0f + expf(-x));
        break;
    case 1:
        y = tanhf(x);
        break;
    case 2:
        y = x + 3.0f < 0.0f ? 0.0f : x + 3.0f;
        y = x * (y > 6.0f ? 6.0f : y) / 6.0f;
        break;
    default:
        y = x > 0.0f ? x : x * p->slope;
        break;
    }
    y = y < p->least ? p->least : y;
    return y > p->most ? p->most : y;
}

static void float_unary_VARIANT(const struct float_unary_VARIANT_params *p, const float *in, int32_t rows,
                                int32_t above, int32_t out_rows, float *out)
{
    (void)rows;
    (void)above;
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        out[i] = float_unary_VARIANT_of(p, in[i]);
    }
}
