/* What the program begins with on a Cortex-M or on a RISC-V core of qemu, and its text on the console. */
#include <stdint.h>

extern uint32_t zero_start[], zero_end[], stack_top[];
int main(void);
void print(const char *text);
void reset(void);

#if defined(__riscv)
static void semihost(uint32_t operation, const void *argument)
{
    register uint32_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(".option push\n\t.option norvc\n\t.balign 16\n\t"
                     "slli zero, zero, 0x1f\n\tebreak\n\tsrai zero, zero, 7\n\t.option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
}
#else
static void semihost(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
#endif

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

static void begin(void)
{
    for (uint32_t *at = zero_start; at < zero_end; at++) {
        *at = 0;
    }
    leave((uint32_t)main());
}

#if defined(__riscv)
__attribute__((naked)) void reset(void)
{
    __asm__ volatile("la sp, stack_top\n\tla t0, %0\n\tjr t0" : : "i"(begin));
}
#else
static void fault(void)
{
    print("a fault of the processor\n");
    leave(70u);
}

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* the floating-point unit, and Helium */
    __asm__ volatile("dsb\n isb");
    begin();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, (const void *)reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};
#endif
