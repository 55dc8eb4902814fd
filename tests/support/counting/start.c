/* What the program begins with on a Cortex-M of qemu, and its text on the console. */
#include <stdint.h>

extern uint32_t zero_start[], zero_end[], stack_top[];
int main(void);
void print(const char *text);
void reset(void);

static void semihost(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void print(const char *text)
{
    semihost(0x04u, text);
}

static void leave(uint32_t code)
{
    const uint32_t block[2] = {0x20026u, code};
    for (;;) {
        semihost(0x20u, block);
    }
}

static void fault(void)
{
    print("a fault of the processor\n");
    leave(70u);
}

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* the floating-point unit, and Helium */
    __asm__ volatile("dsb\n isb");
    for (uint32_t *at = zero_start; at < zero_end; at++) {
        *at = 0;
    }
    leave((uint32_t)main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, (const void *)reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};
