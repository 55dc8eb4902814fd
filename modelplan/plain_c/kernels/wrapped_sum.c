/* uses: inlining */
/* a + b in 32 bits, which wraps. */
WITHIN int32_t wrapped_sum(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
