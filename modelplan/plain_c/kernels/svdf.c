/* uses: clamp, requantise, wrapped_sum */
/* Features of the newest input become the last column of the state, whose columns are weighted by their time. */
struct svdf_VARIANT_params {
    int32_t batches;
    int32_t depth;
    int32_t units;
    int32_t rank;
    int32_t memory;
    int32_t in_zero;
    int32_t state_zero;
    int32_t out_zero;
    int32_t feature_multiplier;
    int32_t feature_shift;
    int32_t multiplier;
    int32_t shift;
};

struct svdf_VARIANT_tables {
    const int8_t *features; /* [units * rank, depth] */
    const element_t *times; /* [units * rank, memory] */
    const int32_t *bias;
};

static void svdf_VARIANT(const struct svdf_VARIANT_params *p, const struct svdf_VARIANT_tables *q, const int8_t *in,
                         element_t *state, int32_t rows, int32_t above, int32_t out_rows, int8_t *out)
{
    const int32_t filters = p->units * p->rank;
    element_t *line = state;
    (void)memmove(state, state + 1, sizeof(element_t) * (size_t)(p->batches * filters * p->memory - 1));
    for (int32_t b = 0; b < p->batches; b++) {
        for (int32_t u = 0; u < p->units; u++) {
            int32_t sum = q->bias[u];
            for (int32_t f = u * p->rank; f < (u + 1) * p->rank; f++) {
                int32_t feature = 0;
                for (int32_t i = 0; i < p->depth; i++) {
                    feature += q->features[f * p->depth + i] * (in[i] - p->in_zero);
                }
                feature = clamp(requantise(feature, p->feature_multiplier, p->feature_shift), ELEMENT_MIN, ELEMENT_MAX);
                line[p->memory - 1] = (element_t)(feature + p->state_zero);
                for (int32_t m = 0; m < p->memory; m++) {
                    sum = wrapped_sum(sum, q->times[f * p->memory + m] * (line[m] - p->state_zero));
                }
                line += p->memory;
            }
            *out = (int8_t)clamp(requantise(sum, p->multiplier, p->shift) + p->out_zero, INT8_MIN, INT8_MAX);
            out++;
        }
        in += p->depth;
    }
}
