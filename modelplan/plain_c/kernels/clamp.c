/* uses: inlining */
/* The number nearest to x that is neither below least nor above most. */
WITHIN int32_t clamp(int32_t x, int32_t least, int32_t most)
{
    const int32_t low = x < least ? least : x;
    return low > most ? most : low;
}
