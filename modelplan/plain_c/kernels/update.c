/* A tensor with a part of it replaced, from places that are read; the part is moved inside. */
struct update_VARIANT_params {
    int32_t axes;
    int32_t runs;           /* of the part */
    int32_t run;            /* bytes */
    int32_t bytes;          /* of the tensor */
};

struct update_VARIANT_tables {
    const int32_t *extents;
    const int32_t *part;    /* its extents */
    const int32_t *strides; /* bytes */
};

static void update_VARIANT(const struct update_VARIANT_params *p, const struct update_VARIANT_tables *q, const void *in,
                           const void *part, const int32_t *starts, int32_t rows, int32_t above, int32_t out_rows,
                           void *out)
{
    const uint8_t *source = (const uint8_t *)part;
    uint8_t *target = (uint8_t *)out;
    (void)memmove(out, in, (size_t)p->bytes);
    for (int32_t k = 0; k < p->axes; k++) {
        const int32_t most = q->extents[k] - q->part[k];
        const int32_t start = starts[k] < 0 ? 0 : starts[k] < most ? starts[k] : most;
        target += start * q->strides[k];
    }
    for (int32_t i = 0; i < p->runs; i++) {
        int32_t rest = i;
        int32_t to = 0;
        for (int32_t k = p->axes - 2; k >= 0; k--) {
            to += rest % q->part[k] * q->strides[k];
            rest /= q->part[k];
        }
        (void)memcpy(target + to, source, (size_t)p->run);
        source += p->run;
    }
}
