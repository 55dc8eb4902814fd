/* One element everywhere. */
struct fill_VARIANT_params {
    int32_t element; /* bytes */
    int32_t count;
};

static void fill_VARIANT(const struct fill_VARIANT_params *p, const void *in, int32_t rows, int32_t above,
                         int32_t out_rows, void *out)
{
    uint8_t *target = (uint8_t *)out;
    for (int32_t i = 0; i < p->count; i++) {
        (void)memcpy(target, in, (size_t)p->element);
        target += p->element;
    }
}
