/* uses: logarithm, requantise, shifted_down, clamp */
/* Logarithms of the shares that exponents have of their sum, 16 of them in the result. */
struct quantised_log_softmax_VARIANT_params {
    int32_t differences;
    int32_t multiplier; /* of differences, to numbers with 5 integer bits */
    int32_t shift;
    int32_t back_multiplier; /* from these to differences */
    int32_t back_shift;
    int32_t lines; /* in a row */
    int32_t channels;
};

struct quantised_log_softmax_VARIANT_tables {
    const int32_t *exponentials; /* of 0, -1, -2 ..., as many as count, with 12 integer bits */
};

static void quantised_log_softmax_VARIANT(const struct quantised_log_softmax_VARIANT_params *p,
                                          const struct quantised_log_softmax_VARIANT_tables *q, const element_t *in,
                                          int32_t rows, int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        int32_t most = in[0];
        int32_t sum = 0;
        for (int32_t c = 1; c < p->channels; c++) {
            most = in[c] > most ? in[c] : most;
        }
        for (int32_t c = 0; c < p->channels; c++) {
            sum += most - in[c] < p->differences ? q->exponentials[most - in[c]] : 0;
        }
        sum = logarithm(sum);
        const int32_t lowest = requantise(sum + INT32_MIN, p->back_multiplier, p->back_shift);
        const int32_t least = lowest > -p->differences ? lowest : -p->differences;
        for (int32_t c = 0; c < p->channels; c++) {
            const int32_t difference = in[c] - most;
            int32_t value = ELEMENT_MIN;
            if (difference > least) {
                value = requantise(difference, p->multiplier, p->shift) - sum;
                value = clamp(shifted_down(value, 22) + ELEMENT_MAX, ELEMENT_MIN, ELEMENT_MAX);
            }
            out[c] = (element_t)value;
        }
        in += p->channels;
        out += p->channels;
    }
}
