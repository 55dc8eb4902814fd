/* uses: window */
/* Means of windows, or the largest of their numbers. */
struct float_pool_VARIANT_params {
#include "pool_fields.part"
    int32_t largest; /* 1: the largest */
    float least;
    float most;
};

static void float_pool_VARIANT(const struct float_pool_VARIANT_params *p, const element_t *in, int32_t rows,
                               int32_t above, int32_t out_rows, element_t *out)
#include "pool_windows.part"
            const float count = (float)((y1 - y0) * (x1 - x0));
            for (int32_t c = 0; c < p->channels; c++) {
                float sum = 0.0f;
                float most = -FLT_MAX;
                for (int32_t i = top + y0; i < top + y1; i++) {
                    const element_t *place = in + i * pitch + (left + x0) * p->channels + c;
                    for (int32_t j = x0; j < x1; j++) {
                        sum += *place;
                        most = *place > most ? *place : most;
                        place += p->channels;
                    }
                }
                sum = p->largest != 0 ? most : sum / count;
                sum = sum < p->least ? p->least : sum;
                *out = sum > p->most ? p->most : sum;
                out++;
            }
        }
    }
}
