/* uses: several, clamp, requantise_sum, sum_of */
/* Up to 4 sums of products become elements. */
WITHIN void rescaled_VARIANT(const sum_t *sums, const sum_t *bias, const int32_t *multiplier, const int8_t *shift,
                             int32_t channels, int32_t zero, int32_t least, int32_t most, element_t *out)
{
    for (int32_t k = 0; k < channels; k++) {
        const int32_t scaled = requantise_sum(sum_of(sums[k], bias[k]), multiplier[k], shift[k]);
        out[k] = (element_t)clamp(scaled + zero, least, most);
    }
}
