/* From integers to floats. */
struct dequantise_VARIANT_params {
    float scale;
    int32_t zero;
    int32_t elements; /* of a row */
};

static void dequantise_VARIANT(const struct dequantise_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                               int32_t out_rows, float *out)
{
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        out[i] = p->scale * (float)(in[i] - p->zero);
    }
}
