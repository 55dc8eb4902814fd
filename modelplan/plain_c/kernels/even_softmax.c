/* uses: clamp, nearest_even */
/* Shares of exponentials in float32, as codes; halves to even numbers. */
struct even_softmax_VARIANT_params {
    float steps; /* of codes in 1 */
    int32_t lines; /* in a row */
    int32_t channels;
    int32_t zero;
};

struct even_softmax_VARIANT_tables {
    const float *exponentials; /* of 0, -1, -2 ... */
};

static void even_softmax_VARIANT(const struct even_softmax_VARIANT_params *p,
                                 const struct even_softmax_VARIANT_tables *q, const element_t *in, int32_t rows,
                                 int32_t above, int32_t out_rows, element_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        int32_t most = in[0];
        float sum = 0.0f;
        for (int32_t c = 1; c < p->channels; c++) {
            most = in[c] > most ? in[c] : most;
        }
        for (int32_t c = 0; c < p->channels; c++) {
            sum += q->exponentials[most - in[c]];
        }
        for (int32_t c = 0; c < p->channels; c++) {
            const float share = q->exponentials[most - in[c]] * p->steps / sum;
            out[c] = (element_t)clamp(nearest_even(share) + p->zero, ELEMENT_MIN, ELEMENT_MAX);
        }
        in += p->channels;
        out += p->channels;
    }
}
