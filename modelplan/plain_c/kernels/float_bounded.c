/* Sums of `channels` channels with their biases, between two bounds. */
static void float_bounded_VARIANT(const sum_t *sums, const sum_t *bias, int32_t channels, float least, float most,
                                  element_t *out)
{
    for (int32_t k = 0; k < channels; k++) {
        const float sum = sums[k] + bias[k];
        const float low = sum < least ? least : sum;
        out[k] = low > most ? most : low;
    }
}
