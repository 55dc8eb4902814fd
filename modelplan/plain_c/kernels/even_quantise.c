/* uses: clamp, nearest_even */
/* From floats to integers, halves to even numbers. */
struct even_quantise_VARIANT_params {
    float scale;
    int32_t zero;
    int32_t least;
    int32_t most;
    int32_t elements; /* of a row */
};

static void even_quantise_VARIANT(const struct even_quantise_VARIANT_params *p, const element_t *in, int32_t rows,
                                  int32_t above, int32_t out_rows, out_t *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        const float scaled = in[i] / p->scale;
        const float low = scaled > -1.0e6f ? scaled : -1.0e6f;
        out[i] = (out_t)clamp(nearest_even(low < 1.0e6f ? low : 1.0e6f) + p->zero, p->least, p->most);
    }
}
