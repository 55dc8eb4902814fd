/* Rows of a camera in, a class out; prints the RAM of the linked program. */
#include <stdint.h>

#include "net.h"

void print(const char *text);
extern char ram_start[], ram_end[];
uint32_t stack_used(void);

/* Stands for a camera: fills row y of the picture. */
static void camera_row(int32_t y, int8_t *row)
{
    for (int32_t i = 0; i < NET_ROW_BYTES; i++) {
        row[i] = (int8_t)((7 * y + 3 * i) % 256 - 128);
    }
}

static void print_number(const char *before, uint32_t n, const char *behind)
{
    char digits[11];
    char *first = digits + sizeof digits - 1;
    *first = 0;
    do {
        *--first = (char)('0' + n % 10u);
        n /= 10u;
    } while (n != 0u);
    print(before);
    print(first);
    print(behind);
}

int main(void)
{
    static int8_t row[NET_ROW_BYTES];
    uint32_t best = 0;
    net_start();
    for (int32_t y = 0;; y++) {
        camera_row(y, row);
        if (net_push_row(row)) {
            break;
        }
    }
    const int8_t *scores = net_output();
    for (uint32_t i = 1; i < NET_OUTPUT_BYTES; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    print_number("class ", best, "\n");
    print_number("RAM   ", (uint32_t)(ram_end - ram_start), " bytes (.data and .bss)\n");
    print_number("      ", NET_RAM_BYTES, " bytes of it are the network's buffer\n");
    print_number("stack ", stack_used(), " bytes\n");
    return 0;
}
