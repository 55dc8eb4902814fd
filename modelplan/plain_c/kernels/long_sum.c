/* a + b in 64 bits. */
static int64_t long_sum(int64_t a, int64_t b)
{
    return a + b;
}
