/* Sums of several maps. */
struct add_n_VARIANT_params {
    int32_t elements; /* of a row */
};

static void add_n_VARIANT(const struct add_n_VARIANT_params *p, OPERANDS, int32_t rows, int32_t above,
                          int32_t out_rows, element_t *out)
{
    const element_t *const terms[COUNT] = {TERMS};
    for (int32_t i = 0; i < out_rows * p->elements; i++) {
        element_t sum = 0;
        for (int32_t k = 0; k < COUNT; k++) {
            sum += terms[k][i];
        }
        out[i] = sum;
    }
}
