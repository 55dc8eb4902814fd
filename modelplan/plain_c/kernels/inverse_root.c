/* uses: high_product, shifted_down */
/* 1 / sqrt(x) as a multiplier and a shift: five steps of Newton's with 3 integer bits. */
static int32_t inverse_root(int32_t x, int32_t *shift)
{
    int32_t root = (int32_t)1 << 28;
    int32_t half;
    if (x <= 1) {
        *shift = 0;
        return INT32_MAX;
    }
    *shift = 11;
    while (x >= (int32_t)1 << 29) {
        x /= 4;
        (*shift)++;
    }
    while (x < (int32_t)1 << 27) {
        x *= 4;
        (*shift)--;
    }
    half = shifted_down(x >> 1, 1);
    for (int32_t i = 0; i < 5; i++) {
        const int32_t cube = high_product(high_product(root, root), root) * 64;
        root = (high_product(402653184, root) - high_product(half, cube)) * 8;
    }
    root = high_product(root, 1518500250);
    if (*shift < 0) {
        root *= (int32_t)1 << -*shift;
        *shift = 0;
    }
    *shift = -*shift;
    return root;
}
