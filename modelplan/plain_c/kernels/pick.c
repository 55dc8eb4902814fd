/* Runs of bytes from places that are read; those beyond an end are moved to it. */
struct pick_VARIANT_params {
    int32_t batches;
    int32_t outer; /* blocks of a batch */
    int32_t block; /* bytes */
    int32_t places; /* of a batch */
    int32_t axes; /* numbers of a place */
    int32_t run; /* bytes */
};

struct pick_VARIANT_tables {
    const int32_t *extents;
    const int32_t *strides; /* bytes */
};

static void pick_VARIANT(const struct pick_VARIANT_params *p, const struct pick_VARIANT_tables *q, const void *in,
                         const int32_t *names, int32_t rows, int32_t above, int32_t out_rows, void *out)
{
    const uint8_t *source = (const uint8_t *)in;
    uint8_t *target = (uint8_t *)out;
    for (int32_t block = 0; block < p->batches * p->outer; block++) {
        const int32_t *name = names + block / p->outer * p->places * p->axes;
        for (int32_t i = 0; i < p->places; i++) {
            int32_t from = 0;
            for (int32_t k = 0; k < p->axes; k++) {
                const int32_t place = *name < 0 ? 0 : *name < q->extents[k] ? *name : q->extents[k] - 1;
                from += place * q->strides[k];
                name++;
            }
            (void)memcpy(target, source + from, (size_t)p->run);
            target += p->run;
        }
        source += p->block;
    }
}
