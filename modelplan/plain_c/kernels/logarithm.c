/* uses: high_product, shifted_down, shifted_up, reciprocal */
/* The logarithm, with 5 integer bits, of a number of at least 1 that has 12. */
static int32_t logarithm(int32_t x)
{
    const int32_t root = 1518500250; /* of 1/2 */
    const int32_t fourth_root = 1805811301;
    const int32_t lower = high_product(x, root);
    int32_t bits = 0;
    int32_t lower_bits = 0;
    while (x >> (30 - bits) == 0) {
        bits++;
    }
    while (lower >> (30 - lower_bits) == 0) {
        lower_bits++;
    }
    /* A power of two, and the part beside it: of two ways to write x that with the smaller part. */
    const int32_t first = shifted_up(high_product(shifted_up(x, bits), root), 1);
    const int32_t second = shifted_up(x, lower_bits);
    const int32_t part = first < second ? first : second;
    const int32_t first_power = (11 - bits) * (1 << 25) + (1 << 23);
    const int32_t second_power = (12 - lower_bits) * (1 << 25) - (1 << 23);
    const int32_t power = first_power > second_power ? first_power : second_power;
    /* The logarithm of the part as a quotient of polynomials. */
    const int32_t middle = (int32_t)(((int64_t)part + fourth_root + 1) / 2);
    const int32_t off = (part - fourth_root) * 2;
    const int32_t square = high_product(off, off);
    const int32_t over = high_product(off, part) + high_product(high_product(off, square), 117049297);
    const int32_t steep = high_product(middle, 1057819769 + off + high_product(127690142, square));
    const int32_t under = steep + high_product(638450708, off);
    const int32_t share = reciprocal((int32_t)(((uint32_t)under + 0x80000000u) >> 1), 0, &bits);
    return (high_product(power, 1488522236) + high_product(shifted_down(over, 6), share)) * 2;
}
