/* uses: inlining */
/* The smaller of two numbers. */
WITHIN int32_t least_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}
