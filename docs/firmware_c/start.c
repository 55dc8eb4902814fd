/* What a Cortex-M4 begins with, and text on the debugger's console by semihosting. */
#include <stdint.h>
#include <string.h>

#define PAINT 0xA5A5A5A5u

extern uint32_t ram_start[], data_end[], data_load[], ram_end[], stack_top[];
int main(void);
void print(const char *text);
uint32_t stack_used(void);
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

/* How far the stack has grown: what lies below it was painted. */
uint32_t stack_used(void)
{
    const uint32_t *at = ram_end;
    while (*at == PAINT) {
        at++;
    }
    return (uint32_t)((const char *)stack_top - (const char *)at);
}

static void end(uint32_t code)
{
    const uint32_t block[2] = {0x20026u, code};
    for (;;) {
        semihost(0x20u, block);
    }
}

static void fault(void)
{
    end(70u);
}

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* the floating-point unit */
    memcpy(ram_start, data_load, (size_t)((const char *)data_end - (const char *)ram_start));
    memset(data_end, 0, (size_t)((const char *)ram_end - (const char *)data_end));
    for (uint32_t *at = ram_end; at < (uint32_t *)__builtin_frame_address(0) - 8; at++) {
        *at = PAINT;
    }
    end((uint32_t)main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    stack_top, (const void *)reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
};
