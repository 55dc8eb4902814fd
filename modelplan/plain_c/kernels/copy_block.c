/* uses: move_bytes */
/* Copies runs of bytes, in four loops. */
struct copy_block_VARIANT_params {
    int32_t run; /* bytes that lie side by side on both sides */
    int32_t source_skip;
    int32_t target_skip;
    int32_t row_source; /* bytes from one element of a loop to the next, on each side */
    int32_t row_target;
    int32_t a_count;
    int32_t a_source;
    int32_t a_target;
    int32_t b_count;
    int32_t b_source;
    int32_t b_target;
    int32_t c_count;
    int32_t c_source;
    int32_t c_target;
};

static void copy_block_VARIANT(const struct copy_block_VARIANT_params *p, const void *in, int32_t rows, int32_t above,
                               int32_t out_rows, void *out)
{
    const uint8_t *const source = (const uint8_t *)in + p->source_skip;
    uint8_t *const target = (uint8_t *)out + p->target_skip;
    for (int32_t y = 0; y < out_rows; y++) {
        for (int32_t a = 0; a < p->a_count; a++) {
            for (int32_t b = 0; b < p->b_count; b++) {
                int32_t from = y * p->row_source + a * p->a_source + b * p->b_source;
                int32_t to = y * p->row_target + a * p->a_target + b * p->b_target;
                for (int32_t c = 0; c < p->c_count; c++) {
                    move_bytes(target + to, source + from, p->run);
                    from += p->c_source;
                    to += p->c_target;
                }
            }
        }
    }
}
