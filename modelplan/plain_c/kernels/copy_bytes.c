/* uses: move_bytes */
struct copy_bytes_VARIANT_params {
    int32_t bytes; /* of a row */
};

static void copy_bytes_VARIANT(const struct copy_bytes_VARIANT_params *p, const void *in, int32_t rows,
                               int32_t above, int32_t out_rows, void *out)
{
    move_bytes(out, in, p->bytes * out_rows);
}
