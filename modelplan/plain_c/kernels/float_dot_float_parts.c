/* uses: least_of, four_floats */
#if defined(FOUR_FLOATS)
/* The same for 16 channels, four at a time. */
static void float_dot_float_parts_sixteen(const float *in, const float *weights, int32_t pitch, int32_t n, float *sums)
{
    const float *w = weights;
    for (int32_t first = 0; first < n; first += 16) {
        const float *const end = w + 4 * least_of(n - first, 16);
        four_floats a = {0.0f, 0.0f, 0.0f, 0.0f};
        four_floats b = a;
        four_floats c = a;
        four_floats d = a;
        while (w < end) {
            const float x = *in++;
            a += x * FOUR_CONSTANTS(w);
            b += x * FOUR_CONSTANTS(w + pitch);
            c += x * FOUR_CONSTANTS(w + 2 * pitch);
            d += x * FOUR_CONSTANTS(w + 3 * pitch);
            w += 4;
        }
        FOUR_FLOATS(sums) += a;
        FOUR_FLOATS(sums + 4) += b;
        FOUR_FLOATS(sums + 8) += c;
        FOUR_FLOATS(sums + 12) += d;
    }
}
#endif

/* Adds the products of n floats with the weights of four channels to their sums, 16 at a time. */
static void float_dot_float_parts_four(const float *in, const float *weights, int32_t n, float *sums)
{
    const float *w = weights;
    for (int32_t first = 0; first < n; first += 16) {
        const float *const end = w + 4 * least_of(n - first, 16);
#if defined(FOUR_FLOATS)
        four_floats all = {0.0f, 0.0f, 0.0f, 0.0f};
        while (w < end) {
            const float x = *in++;
            all += x * FOUR_CONSTANTS(w);
            w += 4;
        }
        FOUR_FLOATS(sums) += all;
#else
        float a = 0.0f;
        float b = 0.0f;
        float c = 0.0f;
        float d = 0.0f;
        for (; end - w >= 16; w += 16) {
            a = a + in[0] * w[0] + in[1] * w[4] + in[2] * w[8] + in[3] * w[12];
            b = b + in[0] * w[1] + in[1] * w[5] + in[2] * w[9] + in[3] * w[13];
            c = c + in[0] * w[2] + in[1] * w[6] + in[2] * w[10] + in[3] * w[14];
            d = d + in[0] * w[3] + in[1] * w[7] + in[2] * w[11] + in[3] * w[15];
            in += 4;
        }
        while (w < end) {
            const float x = *in++;
            a += x * w[0];
            b += x * w[1];
            c += x * w[2];
            d += x * w[3];
            w += 4;
        }
        sums[0] += a;
        sums[1] += b;
        sums[2] += c;
        sums[3] += d;
#endif
    }
}

/* The same for `channels` channels, whose weights lie side by side in fours, the last ones in as many as are left: of a */
/* window of `size` elements those from `at` on. */
static void float_dot_float_parts(const float *in, const float *weights, int32_t size, int32_t at, int32_t n,
                                  int32_t channels, float *sums)
{
    const int32_t few = channels % 4;
    int32_t c = 0;
#if defined(FOUR_FLOATS)
    for (; channels - c >= 16; c += 16) {
        float_dot_float_parts_sixteen(in, weights + c * size + 4 * at, 4 * size, n, sums + c);
    }
#endif
    for (; channels - c >= 4; c += 4) {
        float_dot_float_parts_four(in, weights + c * size + 4 * at, n, sums + c);
    }
    for (; c < channels; c++) {
        const float *w = weights + (channels - few) * size + few * at + c % 4;
        for (int32_t first = 0; first < n; first += 16) {
            const int32_t count = least_of(n - first, 16);
            float sum = 0.0f;
            for (int32_t i = first; i < first + count; i++) {
                sum += in[i] * *w;
                w += few;
            }
            sums[c] += sum;
        }
    }
}
