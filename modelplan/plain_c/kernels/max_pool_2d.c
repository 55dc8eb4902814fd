/* uses: window, clamp */
struct max_pool_2d_VARIANT_params {
#include "pool_fields.part"
    int32_t least;
    int32_t most;
};

static void max_pool_2d_VARIANT(const struct max_pool_2d_VARIANT_params *p, const element_t *in, int32_t rows,
                                int32_t above, int32_t out_rows, element_t *out)
#include "pool_windows.part"
            for (int32_t c = 0; c < p->channels; c++) {
                element_t most = ELEMENT_MIN;
                for (int32_t i = top + y0; i < top + y1; i++) {
                    const element_t *place = in + i * pitch + (left + x0) * p->channels + c;
                    for (int32_t j = x0; j < x1; j++) {
                        most = *place > most ? *place : most;
                        place += p->channels;
                    }
                }
                *out = (element_t)clamp(most, p->least, p->most);
                out++;
            }
        }
    }
}
