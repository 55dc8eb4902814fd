/* uses: least_of */
/* Adds the products of n floats with the weights of `channels` channels, 4 at most, to their sums, 16 at a time. */
static void float_dot_float_parts(const float *in, const float *weights, int32_t pitch, int32_t n, int32_t channels,
                                  float *sums)
{
    for (int32_t first = 0; first < n; first += 16) {
        const int32_t count = least_of(n - first, 16);
        const float *const x = in + first;
        const float *const w = weights + first;
        if (channels == 4) {
            float a = 0.0f;
            float b = 0.0f;
            float c = 0.0f;
            float d = 0.0f;
            for (int32_t i = 0; i < count; i++) {
                a += x[i] * w[i];
                b += x[i] * w[pitch + i];
                c += x[i] * w[2 * pitch + i];
                d += x[i] * w[3 * pitch + i];
            }
            sums[0] += a;
            sums[1] += b;
            sums[2] += c;
            sums[3] += d;
        } else {
            for (int32_t k = 0; k < channels; k++) {
                float a = 0.0f;
                for (int32_t i = 0; i < count; i++) {
                    a += x[i] * w[k * pitch + i];
                }
                sums[k] += a;
            }
        }
    }
}
