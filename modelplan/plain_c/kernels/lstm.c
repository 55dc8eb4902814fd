/* uses: interpolated, clamp, requantise, requantise_sum, sum_of */
/* A long short-term memory whose cells have 16 bits. Gates are, in this order: forget, input, cell, output. */
struct lstm_VARIANT_params {
    int32_t batches;
    int32_t steps;
    int32_t depth;
    int32_t units;
    int32_t batch_pitch; /* elements of the operand from one batch to the next, over the depth */
    int32_t step_pitch;
    int32_t forget_multiplier;
    int32_t forget_shift;
    int32_t input_multiplier;
    int32_t input_shift;
    int32_t hidden_multiplier;
    int32_t hidden_shift;
    int32_t hidden_zero;
    int32_t cell_factor; /* with which cells count in steps of the table */
    int32_t cell_shift;
    int32_t cell_clip; /* 0: none */
};

struct lstm_VARIANT_tables {
    const int8_t *weights; /* [4, units, depth] */
    const int8_t *recurrent_weights; /* [4, units, units] */
    const sum_t *bias; /* [4, units]; what the zero points of operand and state add is taken off */
    const sum_t *recurrent_bias;
    const int32_t *multipliers; /* of each gate for the operand, then of each for the state */
    const int8_t *shifts;
    const uint16_t *sigmoid;
};

/* The sum of products of a gate, in 16 bits. */
static int32_t lstm_VARIANT_dot(const element_t *in, const int8_t *weights, int32_t n, sum_t bias, int32_t multiplier,
                                int32_t shift)
{
    sum_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        sum += in[i] * weights[i];
    }
    return clamp(requantise_sum(sum_of(sum, bias), multiplier, shift), INT16_MIN, INT16_MAX);
}

static int32_t lstm_VARIANT_gate(const struct lstm_VARIANT_params *p, const struct lstm_VARIANT_tables *q,
                                 const element_t *in, const element_t *hidden, int32_t gate, int32_t unit)
{
    const int32_t row = gate * p->units + unit;
    const int32_t first = lstm_VARIANT_dot(in, q->weights + row * p->depth, p->depth, q->bias[row],
                                           q->multipliers[gate], q->shifts[gate]);
    const int32_t second = lstm_VARIANT_dot(hidden, q->recurrent_weights + row * p->units, p->units,
                                            q->recurrent_bias[row], q->multipliers[4 + gate], q->shifts[4 + gate]);
    return interpolated(q->sigmoid, gate == 2 ? 1 : 0, clamp(first + second, INT16_MIN, INT16_MAX), 3, 0);
}

/* One step: the new state goes to `out`. */
static void lstm_VARIANT_step(const struct lstm_VARIANT_params *p, const struct lstm_VARIANT_tables *q,
                              const element_t *in, const element_t *hidden, int16_t *cells, element_t *out)
{
    for (int32_t u = 0; u < p->units; u++) {
        const int32_t forget = lstm_VARIANT_gate(p, q, in, hidden, 0, u) * cells[u];
        const int32_t input = lstm_VARIANT_gate(p, q, in, hidden, 1, u) * lstm_VARIANT_gate(p, q, in, hidden, 2, u);
        const int32_t kept = clamp(requantise(forget, p->forget_multiplier, p->forget_shift), INT16_MIN, INT16_MAX);
        const int32_t added = clamp(requantise(input, p->input_multiplier, p->input_shift), INT16_MIN, INT16_MAX);
        int32_t cell = clamp(kept + added, INT16_MIN, INT16_MAX);
        if (p->cell_clip > 0) {
            cell = clamp(cell, -p->cell_clip, p->cell_clip);
        }
        cells[u] = (int16_t)cell;
        cell = interpolated(q->sigmoid, 1, cell, p->cell_factor, p->cell_shift);
        cell = requantise(cell * lstm_VARIANT_gate(p, q, in, hidden, 3, u), p->hidden_multiplier, p->hidden_shift);
        out[u] = (element_t)clamp(cell + p->hidden_zero, ELEMENT_MIN, ELEMENT_MAX);
    }
}

static void lstm_VARIANT(const struct lstm_VARIANT_params *p, const struct lstm_VARIANT_tables *q, const element_t *in,
                         element_t *hidden, int16_t *cells, int32_t rows, int32_t above, int32_t out_rows,
                         element_t *out)
{
    for (int32_t b = 0; b < p->batches; b++) {
        for (int32_t t = 0; t < p->steps; t++) {
            const int32_t place = b * p->batch_pitch + t * p->step_pitch;
            element_t *const state = hidden + b * p->units;
            lstm_VARIANT_step(p, q, in + place * p->depth, state, cells + b * p->units, out + place * p->units);
            (void)memcpy(state, out + place * p->units, sizeof(element_t) * (size_t)p->units);
        }
    }
}
