/* Where along an axis the largest element stands, or the least; of equal ones the first. */
struct extreme_places_VARIANT_params {
    int32_t lines;   /* of a row, along the axes before the one that is looked along */
    int32_t reduced;
    int32_t inner;   /* elements behind it */
    int32_t least;   /* 0: the largest */
};

static void extreme_places_VARIANT(const struct extreme_places_VARIANT_params *p, const element_t *in, int32_t rows,
                                   int32_t above, int32_t out_rows, out_t *out)
{
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        for (int32_t i = 0; i < p->inner; i++) {
            int32_t place = 0;
            for (int32_t k = 1; k < p->reduced; k++) {
                const element_t here = in[k * p->inner + i];
                const element_t best = in[place * p->inner + i];
                place = (p->least ? here < best : here > best) ? k : place;
            }
            *out = place;
            out++;
        }
        in += p->reduced * p->inner;
    }
}
