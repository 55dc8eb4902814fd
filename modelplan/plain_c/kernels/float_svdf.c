/* Features of the newest input become the last column of the state, whose columns are weighted by their time. */
struct float_svdf_VARIANT_params {
    int32_t batches;
    int32_t depth;
    int32_t units;
    int32_t rank;
    int32_t memory;
    float least;
    float most;
};

struct float_svdf_VARIANT_tables {
    const float *features; /* [units * rank, depth] */
    const float *times;    /* [units * rank, memory] */
    const float *bias;
};

static float float_svdf_VARIANT_dot(const float *a, const float *b, int32_t n)
{
    float sum = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void float_svdf_VARIANT(const struct float_svdf_VARIANT_params *p, const struct float_svdf_VARIANT_tables *q,
                               const float *in, float *state, int32_t rows, int32_t above, int32_t out_rows, float *out)
{
    const int32_t filters = p->units * p->rank;
    float *line = state;
    (void)memmove(state, state + 1, sizeof(float) * (size_t)(p->batches * filters * p->memory - 1));
    for (int32_t b = 0; b < p->batches; b++) {
        for (int32_t u = 0; u < p->units; u++) {
            float sum = q->bias[u];
            for (int32_t f = u * p->rank; f < (u + 1) * p->rank; f++) {
                line[p->memory - 1] = float_svdf_VARIANT_dot(q->features + f * p->depth, in, p->depth);
                sum += float_svdf_VARIANT_dot(q->times + f * p->memory, line, p->memory);
                line += p->memory;
            }
            sum = sum > p->least ? sum : p->least;
            *out = sum < p->most ? sum : p->most;
            out++;
        }
        in += p->depth;
    }
}
