/* uses: dot_VARIANT, clamp, requantise_sum, sum_of */
struct fully_connected_VARIANT_params {
    const weight_t *weights; /* [out_channels, in_channels] */
    const sum_t *bias;       /* what the zero point of the operand adds to each channel is taken off */
    const int32_t *multiplier;
    const int8_t *shift;
    int32_t by_channel; /* 0: one multiplier and one shift for all channels */
    int32_t lines;      /* in a row */
    int32_t in_channels;
    int32_t out_channels;
    int32_t out_zero;
    int32_t least;
    int32_t most;
};

static void fully_connected_VARIANT(const struct fully_connected_VARIANT_params *p, const element_t *in, int32_t rows,
                                    int32_t above, int32_t out_rows, element_t *out)
{
    (void)rows;
    (void)above;
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        for (int32_t c = 0; c < p->out_channels; c += 4) {
            sum_t sums[4] = {0, 0, 0, 0};
            const int32_t channels = p->out_channels - c < 4 ? p->out_channels - c : 4;
            dot_VARIANT(in, p->weights + c * p->in_channels, p->in_channels, p->in_channels, channels, sums);
            for (int32_t k = 0; k < channels; k++) {
                const int32_t scale = p->by_channel * (c + k);
                const sum_t sum = sum_of(sums[k], p->bias[c + k]);
                const int32_t scaled = requantise_sum(sum, p->multiplier[scale], p->shift[scale]);
                *out = (element_t)clamp(scaled + p->out_zero, p->least, p->most);
                out++;
            }
        }
        in += p->in_channels;
    }
}
