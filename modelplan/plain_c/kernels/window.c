/* uses: least_of */
/* Which taps [*first, *end) of a window of so many lie in a map of so many elements; the first one lies at `start`. */
static void window(int32_t start, int32_t taps, int32_t dilation, int32_t elements, int32_t *first, int32_t *end)
{
    const int32_t inside = elements - start;
    *first = 0;
    *end = taps;
    if (start < 0) {
        *first = least_of((dilation - start - 1) / dilation, taps);
    }
    if (inside < (taps - 1) * dilation + 1) {
        *end = inside > 0 ? (inside + dilation - 1) / dilation : 0;
    }
    if (*end < *first) {
        *end = *first;
    }
}
