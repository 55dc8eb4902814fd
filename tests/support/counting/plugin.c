/* A plugin of qemu that counts the instructions between two functions, by their addresses.
 *
 * gcc -shared -fPIC -O2 plugin.c -o plugin.so
 * qemu-system-arm ... -plugin ./plugin.so,first=ADDRESS,last=ADDRESS,into=FILE
 *
 * FILE has a line for each address that was executed: the address and how often. What qemu's header says of the
 * functions below (version 1 of its interface) is stated here, as Debian packs no header. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0, ADD = 0 };

int qemu_plugin_version = 1;
int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*seen)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*run)(unsigned, void *), int registers,
                                          void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int operation, void *counter, uint64_t more);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*ended)(plugin_id, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

/* Instructions that are translated together, and so executed together. */
struct block {
    uint64_t times;
    uint64_t before; /* how often they had been executed when counting began */
    size_t length;
    uint64_t *addresses;
    struct block *next;
};

static struct block *blocks;
static uint64_t first_address;
static uint64_t last_address;
static const char *file_name;
static int counting;

static void begin(unsigned cpu, void *data)
{
    (void)cpu;
    (void)data;
    for (struct block *b = blocks; b != NULL; b = b->next) {
        b->before = b->times;
    }
    counting = 1;
}

static void end(unsigned cpu, void *data)
{
    FILE *file;
    (void)cpu;
    (void)data;
    if (!counting || (file = fopen(file_name, "w")) == NULL) {
        return;
    }
    for (const struct block *b = blocks; b != NULL; b = b->next) {
        for (size_t i = 0; i < b->length && b->times > b->before; i++) {
            fprintf(file, "%llx %llu\n", (unsigned long long)b->addresses[i],
                    (unsigned long long)(b->times - b->before));
        }
    }
    fclose(file);
    counting = 0;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    struct block *const b = calloc(1, sizeof *b);
    const uint64_t address = qemu_plugin_tb_vaddr(tb);
    (void)id;
    b->length = qemu_plugin_tb_n_insns(tb);
    b->addresses = calloc(b->length, sizeof *b->addresses);
    for (size_t i = 0; i < b->length; i++) {
        b->addresses[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
    }
    b->next = blocks;
    blocks = b;
    if (address == last_address) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, end, NO_REGISTERS, NULL);
    }
    if (address == first_address) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, begin, NO_REGISTERS, NULL);
    }
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD, &b->times, 1);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "first=", 6) == 0) {
            first_address = strtoull(argv[i] + 6, NULL, 16);
        } else if (strncmp(argv[i], "last=", 5) == 0) {
            last_address = strtoull(argv[i] + 5, NULL, 16);
        } else if (strncmp(argv[i], "into=", 5) == 0) {
            file_name = strdup(argv[i] + 5);
        } else {
            fprintf(stderr, "unknown option %s\n", argv[i]);
            return 1;
        }
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return file_name == NULL;
}
