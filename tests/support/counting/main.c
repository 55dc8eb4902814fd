/* Runs a network once on numbers that are drawn, and prints a hash of its outputs; INPUTS and OUTPUTS name them. */
#include <stdint.h>
#include "net.h"

void print(const char *text);
void counted_from(void);
void counted_to(void);

__attribute__((noinline)) void counted_from(void)
{
    __asm__ volatile("nop" ::: "memory");
}

__attribute__((noinline)) void counted_to(void)
{
    __asm__ volatile("nop" ::: "memory");
}

static uint32_t state = 12345u;
static uint32_t hash = 2166136261u;

static void draw(void *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        ((uint8_t *)to)[i] = (uint8_t)(state >> 24);
    }
}

static void look_at(const void *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ ((const uint8_t *)from)[i]) * 16777619u;
    }
}

int main(void)
{
    char text[10] = "00000000\n";
    INPUTS
    counted_from();
    net_invoke();
    counted_to();
    OUTPUTS
    for (int i = 0; i < 8; i++) {
        text[i] = "0123456789abcdef"[hash >> (28 - 4 * i) & 15u];
    }
    print(text);
    return 0;
}
