/* Puts a constant around a map. */
struct pad_VARIANT_params {
    element_t value;
    int32_t width; /* of the operand */
    int32_t channels;
    int32_t left;
    int32_t right;
    int32_t front; /* channels before those of the operand */
    int32_t back;
};

static void pad_VARIANT(const struct pad_VARIANT_params *p, const element_t *in, int32_t rows, int32_t above,
                        int32_t out_rows, element_t *out)
{
    for (int32_t y = 0; y < out_rows; y++) {
        const int32_t row = y - above;
        for (int32_t x = -p->left; x < p->width + p->right; x++) {
            const int inside = row >= 0 && row < rows && x >= 0 && x < p->width;
            for (int32_t c = -p->front; c < p->channels + p->back; c++) {
                const int taken = inside && c >= 0 && c < p->channels;
                *out = taken ? in[(row * p->width + x) * p->channels + c] : p->value;
                out++;
            }
        }
    }
}
