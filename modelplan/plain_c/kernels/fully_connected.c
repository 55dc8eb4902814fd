/* uses: least_of, dot_VARIANT, rescaled_VARIANT */
struct fully_connected_VARIANT_params {
    int32_t by_channel; /* 0: one multiplier and one shift for all channels */
    int32_t lines;      /* in a row */
    int32_t in_channels;
    int32_t out_channels;
    int32_t out_zero;
    int32_t least;
    int32_t most;
};

struct fully_connected_VARIANT_tables {
    const weight_t *weights; /* [out_channels, in_channels] */
    const sum_t *bias;       /* what the zero point of the operand adds to each channel is taken off */
    const int32_t *multiplier;
    const int8_t *shift;
};

static void fully_connected_VARIANT(const struct fully_connected_VARIANT_params *p,
                                    const struct fully_connected_VARIANT_tables *q, const element_t *in, int32_t rows,
                                    int32_t above, int32_t out_rows, element_t *out)
{
    const int32_t multipliers[4] = {q->multiplier[0], q->multiplier[0], q->multiplier[0], q->multiplier[0]};
    const int8_t shifts[4] = {q->shift[0], q->shift[0], q->shift[0], q->shift[0]};
    for (int32_t line = 0; line < out_rows * p->lines; line++) {
        for (int32_t c = 0; c < p->out_channels; c += 4) {
            sum_t sums[4] = {0, 0, 0, 0};
            const int32_t channels = least_of(p->out_channels - c, 4);
            dot_VARIANT(in, q->weights + c * p->in_channels, p->in_channels, p->in_channels,
                    channels, sums);
            rescaled_VARIANT(sums, q->bias + c, p->by_channel != 0 ? q->multiplier + c : multipliers,
                             p->by_channel != 0 ? q->shift + c : shifts, channels, p->out_zero, p->least, p->most,
                             out + c);
        }
        in += p->in_channels;
        out += p->out_channels;
    }
}
