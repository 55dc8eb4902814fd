/* uses: window, clamp */
struct average_pool_2d_VARIANT_params {
#include "pool_fields.part"
    int32_t least;
    int32_t most;
};

static void average_pool_2d_VARIANT(const struct average_pool_2d_VARIANT_params *p, const element_t *in, int32_t rows,
                                    int32_t above, int32_t out_rows, element_t *out)
#include "pool_windows.part"
            const int32_t count = (y1 - y0) * (x1 - x0);
            for (int32_t c = 0; c < p->channels; c++) {
                int32_t sum = 0;
                for (int32_t i = top + y0; i < top + y1; i++) {
                    const element_t *place = in + i * pitch + (left + x0) * p->channels + c;
                    for (int32_t j = x0; j < x1; j++) {
                        sum += *place;
                        place += p->channels;
                    }
                }
                sum = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
                *out = (element_t)clamp(sum, p->least, p->most);
                out++;
            }
        }
    }
}
