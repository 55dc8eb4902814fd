/* uses: several */
/* The sums of four channels that lie side by side. */
struct four_sums_VARIANT {
    sum_t of[4];
};

/* Adds the products of four elements, each with its weight. */
WITHIN void add_four_VARIANT(struct four_sums_VARIANT *sums, const element_t *in, const weight_t *weights)
{
    sums->of[0] += (product_t)in[0] * weights[0];
    sums->of[1] += (product_t)in[1] * weights[1];
    sums->of[2] += (product_t)in[2] * weights[2];
    sums->of[3] += (product_t)in[3] * weights[3];
}

/* The same where all four are of one element. */
WITHIN void add_alike_VARIANT(struct four_sums_VARIANT *sums, const element_t *in, const weight_t *weights)
{
    const product_t x = *in;
    sums->of[0] += x * weights[0];
    sums->of[1] += x * weights[1];
    sums->of[2] += x * weights[2];
    sums->of[3] += x * weights[3];
}

WITHIN void put_sums_VARIANT(const struct four_sums_VARIANT *sums, sum_t to[4])
{
    (void)memcpy(to, sums->of, sizeof sums->of);
}
