/* A long short-term memory of floats. Gates are, in this order: forget, input, cell, output. */
struct float_lstm_VARIANT_params {
    int32_t batches;
    int32_t steps;
    int32_t depth;
    int32_t units;
    int32_t batch_pitch; /* elements of the operand from one batch to the next, over the depth */
    int32_t step_pitch;
    float cell_clip; /* 0: none */
};

struct float_lstm_VARIANT_tables {
    const float *weights; /* [4, units, depth] */
    const float *recurrent_weights; /* [4, units, units] */
    const float *bias; /* [4, units] */
};

static float float_lstm_VARIANT_dot(const float *in, const float *weights, int32_t n)
{
    float sum = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        sum += in[i] * weights[i];
    }
    return sum;
}

static float float_lstm_VARIANT_gate(const struct float_lstm_VARIANT_params *p,
                                     const struct float_lstm_VARIANT_tables *q, const float *in, const float *hidden,
                                     int32_t gate, int32_t unit)
{
    const int32_t row = gate * p->units + unit;
    const float first = float_lstm_VARIANT_dot(in, q->weights + row * p->depth, p->depth) + q->bias[row];
    const float x = first + float_lstm_VARIANT_dot(hidden, q->recurrent_weights + row * p->units, p->units);
    if (gate == 2) {
        return tanhf(x);
    }
    return x > 16.619047164916992188f ? 1.0f : x < -9.0f ? expf(x) : 1.0f / (1.0f + expf(-x));
}

static void float_lstm_VARIANT(const struct float_lstm_VARIANT_params *p, const struct float_lstm_VARIANT_tables *q,
                               const float *in, float *hidden, float *cells, int32_t rows, int32_t above,
                               int32_t out_rows, float *out)
{
    for (int32_t b = 0; b < p->batches; b++) {
        float *const state = hidden + b * p->units;
        float *const cell = cells + b * p->units;
        for (int32_t t = 0; t < p->steps; t++) {
            const int32_t place = b * p->batch_pitch + t * p->step_pitch;
            const float *const x = in + place * p->depth;
            float *const y = out + place * p->units;
            for (int32_t u = 0; u < p->units; u++) {
                const float kept = float_lstm_VARIANT_gate(p, q, x, state, 0, u) * cell[u];
                const float input = float_lstm_VARIANT_gate(p, q, x, state, 1, u);
                cell[u] = kept + input * float_lstm_VARIANT_gate(p, q, x, state, 2, u);
                if (p->cell_clip > 0.0f) {
                    cell[u] = cell[u] > p->cell_clip ? p->cell_clip : cell[u];
                    cell[u] = cell[u] < -p->cell_clip ? -p->cell_clip : cell[u];
                }
                y[u] = tanhf(cell[u]) * float_lstm_VARIANT_gate(p, q, x, state, 3, u);
            }
            (void)memcpy(state, y, sizeof(float) * (size_t)p->units);
        }
    }
}
