/* Numbers between bounds. */
struct bounded_VARIANT_params {
    element_t least;
    element_t most;
    int32_t elements; /* of a row */
};

static void bounded_VARIANT(const struct bounded_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                            int32_t out_rows, element_t *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        const element_t low = in[i] < p->least ? p->least : in[i];
        out[i] = low > p->most ? p->most : low;
    }
}
