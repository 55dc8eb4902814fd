/* uses: window */
/* Means of windows, the largest of their numbers, or the root of the mean of their squares. */
struct float_pool_VARIANT_params {
#include "pool_fields.part"
    int32_t whole; /* places of a window, where those beside the map count too; else 0 */
    int32_t takes; /* 0 the mean, 1 the largest, 2 the root of the mean square */
    float least;
    float most;
};

static void float_pool_VARIANT(const struct float_pool_VARIANT_params *p, const element_t *in, int32_t rows,
                               int32_t above, int32_t out_rows, element_t *out)
#include "pool_windows.part"
            const float count = (float)(p->whole != 0 ? p->whole : (y1 - y0) * (x1 - x0));
            for (int32_t c = 0; c < p->channels; c++) {
                float sum = 0.0f;
                float most = -FLT_MAX;
                for (int32_t i = top + y0; i < top + y1; i++) {
                    const element_t *place = in + i * pitch + (left + x0) * p->channels + c;
                    for (int32_t j = x0; j < x1; j++) {
                        sum += p->takes == 2 ? *place * *place : *place;
                        most = *place > most ? *place : most;
                        place += p->channels;
                    }
                }
                sum = p->takes == 1 ? most : p->takes == 2 ? sqrtf(sum / count) : sum / count;
                sum = sum < p->least ? p->least : sum;
                *out = sum > p->most ? p->most : sum;
                out++;
            }
        }
    }
}
