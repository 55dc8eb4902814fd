/* uses: window, clamp, nearest_even */
/* Means of windows of codes in float32, as codes of another scale; halves to even numbers. */
struct even_pool_VARIANT_params {
#include "pool_fields.part"
    int32_t whole; /* places of a window, where those beside the map count too; else 0 */
    int32_t in_zero;
    float in_scale;
    int32_t code; /* of the file's codes 0 */
    int32_t out_zero; /* in the file's codes, as it is added before numbers are rounded */
    float out_scale;
    int32_t least;
    int32_t most;
};

static void even_pool_VARIANT(const struct even_pool_VARIANT_params *p, const element_t *in, int32_t rows,
                              int32_t above, int32_t out_rows, element_t *out)
#include "pool_windows.part"
            const float count = (float)(p->whole != 0 ? p->whole : (y1 - y0) * (x1 - x0));
            for (int32_t c = 0; c < p->channels; c++) {
                float sum = 0.0f;
                for (int32_t i = top + y0; i < top + y1; i++) {
                    const element_t *place = in + i * pitch + (left + x0) * p->channels + c;
                    for (int32_t j = x0; j < x1; j++) {
                        volatile float number = (float)(*place - p->in_zero) * p->in_scale;
                        sum += number;
                        place += p->channels;
                    }
                }
                const float scaled = sum / count / p->out_scale + (float)p->out_zero;
                *out = (element_t)clamp(nearest_even(scaled) - p->code, p->least, p->most);
                out++;
            }
        }
    }
}
